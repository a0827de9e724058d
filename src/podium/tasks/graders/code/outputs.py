"""Whether what a program printed or returned is what it should, as LiveCodeBench compares them.

What comes from the program is compared as data here, outside of its sandbox. The rules are those of
`lcb_runner/evaluation/testing_util.py`: lines without outer space, equal as text or as decimal numbers one by one, with
no tolerance; a returned tuple is a list, but one within a list is not.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from podium.sandbox.inside.plain import unpack


def same_output(printed: str, wanted: str) -> bool:
    """Whether a program printed what was wanted."""
    given, right = _lines(printed), _lines(wanted)
    return len(given) == len(right) and all(map(_same_line, given, right))


def same_value(returned: bytes, wanted: Any) -> bool:
    """Whether a function returned what was wanted.

    Args:
        returned: as `inside.program` says it; anything else is wrong.
        wanted: a value of JSON.
    """
    try:
        said = json.loads(returned)
        packed = said["value"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    if isinstance(packed, dict) and packed.keys() == {"tuple"}:
        packed = packed["tuple"]
    return _same(packed, wanted)


def _same(packed: Any, wanted: Any) -> bool:
    """The same, without building sets and dictionaries of the program's choice, which may take for ever."""
    if isinstance(wanted, list | tuple):
        return isinstance(packed, list) and len(packed) == len(wanted) and all(map(_same, packed, wanted))
    if isinstance(wanted, dict):
        return _same_table(packed, wanted)
    if isinstance(packed, dict):
        return packed.keys() == {"int"} and _same_number(packed, wanted)
    return not isinstance(packed, list) and bool(packed == wanted)


def _same_table(packed: Any, wanted: dict[str, Any]) -> bool:
    if not isinstance(packed, dict) or packed.keys() != {"dict"} or not isinstance(packed["dict"], list):
        return False
    pairs = packed["dict"]
    if any(not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) for pair in pairs):
        return False
    held = dict(pairs)
    return held.keys() == wanted.keys() and all(_same(held[key], wanted[key]) for key in wanted)


def _same_number(packed: dict[str, Any], wanted: Any) -> bool:
    try:
        return bool(unpack(packed) == wanted)
    except ValueError:
        return False


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(given: str, right: str) -> bool:
    if given == right:
        return True
    try:
        return [Decimal(part) for part in given.split()] == [Decimal(part) for part in right.split()]
    except InvalidOperation:
        return False
