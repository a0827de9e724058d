"""What single cells of a user's table say: text as people write it, and numbers within their bounds.

A cell that says something else is a ValueError in half a sentence; `table` adds the file and the line.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import nan
from typing import Any

from podium.recordings.model import SPLIT_NAMES
from podium.rows import cell_text, is_empty

_WORDS = {"true": 1, "false": 0}
_MOST = 2**31
"""What 32 bits hold is below it, as the columns of a recording."""

Values = Mapping[str, Any]


def optional_text(values: Values, column: str | None) -> str | None:
    """A cell as text, numbers as people write them, lists and objects as JSON; None where it is empty."""
    return None if column is None or is_empty(values[column]) else cell_text(values, column)


def verbatim(values: Values, column: str | None) -> str | None:
    """The same, and a text that is empty stays one."""
    value = None if column is None else values[column]
    return value if isinstance(value, str) else optional_text(values, column)


def split(values: Values, column: str | None) -> str | None:
    """The name that recordings have for a split; None where the cell is empty.

    Raises:
        ValueError: it names none.
    """
    name = optional_text(values, column)
    if name is None:
        return None
    if name.strip().casefold() not in SPLIT_NAMES:
        raise ValueError(f"its {column} {reprlib.repr(name)} is none of train, validation and test")
    return SPLIT_NAMES[name.strip().casefold()]


def score(values: Values, column: str | None) -> float | None:
    """A verdict in [0, 1]; None where the cell is empty, as below; raises ValueError where it is none."""
    number = _number(values, column, lambda number: 0 <= number <= 1, "scores are from 0 to 1")
    return None if number is None else float(number)


def seconds(values: Values, column: str | None) -> float | None:
    """A time; raises as `score`."""
    return _number(values, column, lambda number: 0 <= number < _MOST, "seconds are from 0 to 2**31")


def count(values: Values, column: str | None) -> int | None:
    """A number of tokens or letters; raises as `score`."""
    number = _number(
        values,
        column,
        lambda number: 0 <= number < _MOST and number == int(number),
        "counts are whole numbers from 0, below 2**31",
    )
    return None if number is None else int(number)


def sample(values: Values, column: str | None) -> float:
    """Where a response stands among its worker's: any number, of which a whole one is an int; 0 where it is empty.

    Raises:
        ValueError: it is none.
    """
    # An int stays one: seeds are longer than the digits of a float.
    held = "samples are numbers of 64 bits"
    return _number(values, column, lambda number: -(2**63) <= number < 2**63, held) or 0


def _number(values: Values, column: str | None, fits: Callable[[float], bool], wanted: str) -> float | None:
    value = None if column is None else values[column]
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = _read(value)
    if not fits(number):
        raise ValueError(f"its {column} is {reprlib.repr(value)}, and {wanted}")
    return number


def _read(value: Any) -> float:
    """The number of a cell, in a CSV of its text; what is none is no number, which is within no bounds."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        value = value.strip().casefold()
        if value in _WORDS:
            return _WORDS[value]
        with suppress(ValueError):
            return int(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return nan
