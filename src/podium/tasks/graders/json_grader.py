"""The grader of JSON: compares a JSON value with the gold value. What it reads is bounded in length and depth."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import extract
from podium.tasks.task import Grade
from podium.text.answer import to_nfkc
from podium.text.code_blocks import last_block
from podium.text.thoughts import without_thoughts

MAX_CHARACTERS = 100_000
MAX_DEPTH = 64
_LONGEST_NUMBER = 100
_ANSWER = re.compile(r"^[ \t*_#>]*(?:final )?answer[ \t*_]*:[*_]*", re.IGNORECASE | re.MULTILINE)
"""An "answer:" without quotes; in quotes it is a key."""


class Json(PureGrader):
    """1 when the response gives a JSON value that equals the gold value.

    The answer is the content of the last `<answer>...</answer>`, else the text after the last `Answer:`, else the whole
    response; of that, if there are fenced blocks, only the last one that is tagged as JSON, else the last that can be
    read. It must be strict JSON, with nothing before and after it. The order of keys does not count, but the order of
    lists does. `1` equals `1.0`, but not `true` or `"1"`. Not accepted: values in prose, comments, trailing commas,
    repeated keys, NaN, and a value of more than 100,000 characters or 64 levels or with a number of more than 100
    digits.
    """

    kind: Literal["json"] = "json"
    extra_keys: bool = False
    """Whether objects may have keys that the gold answer lacks."""
    absolute: float = Field(default=1e-9, ge=0)
    """The largest absolute difference from a gold number."""
    relative: float = Field(default=0.0, ge=0)
    """The largest difference as a share of the gold number; the larger of the two tolerances counts."""

    def gold_problem(self, gold: str) -> str | None:
        try:
            wanted = _read(gold)
        except ValueError as error:
            return f"the gold answer is not JSON that can be graded: {error}"
        return "the gold answer {} accepts every object" if self.extra_keys and wanted == {} else None

    def judge(self, response: str, gold: str) -> Grade:
        answer = _value_text(without_thoughts(response).strip())
        try:
            value, wanted = _read(answer), _read(gold)
        except ValueError:
            return Grade(0.0, answer or None)
        return Grade(float(self._same(value, wanted)), answer)

    def _same(self, value: Any, wanted: Any) -> bool:
        if isinstance(wanted, dict):
            return (
                isinstance(value, dict)
                and value.keys() >= wanted.keys()
                and (self.extra_keys or len(value) == len(wanted))
                and all(self._same(value[key], inner) for key, inner in wanted.items())
            )
        if isinstance(wanted, list):
            return (
                isinstance(value, list) and len(value) == len(wanted) and all(map(self._same, value, wanted))
            )
        if _is_number(wanted):
            tolerance = max(self.absolute, self.relative * abs(wanted))
            # Differences of integers are exact, however long they are.
            return _is_number(value) and abs(value - wanted) <= tolerance
        if isinstance(wanted, str):
            return isinstance(value, str) and to_nfkc(value) == to_nfkc(wanted)
        return type(value) is type(wanted) and bool(value == wanted)


def _value_text(response: str) -> str:
    answer = extract(response, "tag")
    if answer is None:
        begins = max((match.end() for match in _ANSWER.finditer(response)), default=0)
        answer = response[begins:]
    return (last_block(answer, {"json"}, _is_json) or answer).strip()


def _read(text: str) -> Any:
    """Parse a text as JSON, within the limits.

    Raises:
        ValueError: it is no JSON, or exceeds a limit.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it has {len(text)} characters, and at most {MAX_CHARACTERS} are read")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=lambda digits: int(_short(digits)),
            parse_float=lambda digits: _finite(float(_short(digits))),
            parse_constant=_refuse,
        )
    except RecursionError:
        raise ValueError("it is too deep") from None
    layer = [value]
    for _ in range(MAX_DEPTH + 1):
        layer = [inner for outer in layer for inner in _inside(outer)]
    if layer:
        raise ValueError(f"it is deeper than {MAX_DEPTH} levels")
    return value


def _is_json(text: str) -> bool:
    try:
        _read(text)
    except ValueError:
        return False
    return True


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("it has a key twice")
    return values


def _short(digits: str) -> str:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"it has a number of more than {_LONGEST_NUMBER} digits")
    return digits


def _finite(number: float) -> float:
    return number if math.isfinite(number) else _refuse("it")


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no finite number")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
