"""The grader of JSON: the values of the gold answer, and a schema where one is set.

The values are compared first: so a schema, whose cost depends on what it is applied to, sees answers alone that
hold the gold values. How a schema is read is in `schema`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, field_validator

from podium.errors import GraderError
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.extraction import fenced, find
from podium.tasks.graders.schema import check_schema, fits
from podium.tasks.task import Grade

LONGEST = 100_000
"""Characters of a value, at most."""
DEEPEST = 64
"""Lists and objects inside one another, at most."""
_LONGEST_NUMBER = 100
_ANSWER = re.compile(r"^[ \t*_#>]*(?:final )?answer[ \t*_]*:[*_]*", re.IGNORECASE | re.MULTILINE)
"""Not in quotes: that is a key."""


class Json(GraderSettings):
    """1 when the response gives a JSON value that holds what the gold one holds, and that fits the schema.

    The answer is the inside of the last `<answer>...</answer>`; else what follows the last `Answer:`; else all of the
    response; and of that the inside of the last fenced block, if there is one. It is JSON to the letter, nothing
    before it and nothing behind it. The order of keys does not count, that of lists does. `1` is `1.0`, and neither
    is `true` or `"1"`. Not accepted: values in prose, comments, trailing commas, a key twice, NaN, and what is longer
    than 100,000 characters, deeper than 64 levels or holds a number of more than 100 digits.

    With `extra_keys`, the gold answer `{}` and a schema, the schema alone decides.
    """

    kind: Literal["json"] = "json"
    json_schema: dict[str, Any] = Field(default_factory=dict)
    """JSON Schema (draft 2020-12) that the value must fit; empty: none."""
    extra_keys: bool = False
    """Whether objects may have keys that those of the gold answer have not."""
    absolute: float = Field(default=1e-9, ge=0)
    """How far numbers may be off."""
    relative: float = Field(default=0.0, ge=0)
    """The same as a share of the gold number; the larger of both holds."""

    @field_validator("json_schema")
    @classmethod
    def _readable(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema:
            check_schema(schema)
        return schema

    def complaint(self, gold: str) -> str | None:
        try:
            wanted = _read(gold)
        except ValueError as error:
            return f"the gold answer is not JSON that can be graded: {error}"
        if self.extra_keys:
            return None if wanted != {} or self.json_schema else "the gold answer {} asks for nothing"
        try:
            fitting = not self.json_schema or fits(self.json_schema, wanted)
        except GraderError as error:
            return f"the gold answer cannot be checked: {error}"
        return None if fitting else "the gold answer does not fit the schema"

    async def __call__(self, response: str, gold: str) -> Grade:
        found = _found(response.strip())
        try:
            given, wanted = _read(found), _read(gold)
        except ValueError:
            return Grade(0.0, found or None)
        right = self._holds(given, wanted) and (not self.json_schema or fits(self.json_schema, given))
        return Grade(float(right), found)

    def _holds(self, given: Any, wanted: Any) -> bool:
        """Whether a value holds what is wanted; as deep as what is wanted, and no deeper."""
        if isinstance(wanted, dict):
            return (
                isinstance(given, dict)
                and given.keys() >= wanted.keys()
                and (self.extra_keys or len(given) == len(wanted))
                and all(self._holds(given[key], value) for key, value in wanted.items())
            )
        if isinstance(wanted, list):
            return (
                isinstance(given, list) and len(given) == len(wanted) and all(map(self._holds, given, wanted))
            )
        if _is_number(wanted):
            # A difference of whole numbers is exact, however long they are.
            return _is_number(given) and abs(given - wanted) <= self._tolerance(wanted)
        return type(given) is type(wanted) and bool(given == wanted)

    def _tolerance(self, wanted: int | float) -> float:
        return max(self.absolute, self.relative * abs(wanted))


def _found(response: str) -> str:
    """Where the value should be."""
    said = find(response, "tag")
    if said is None:
        begins = max((match.end() for match in _ANSWER.finditer(response)), default=0)
        said = response[begins:]
    return fenced(said).strip()


def _read(text: str) -> Any:
    """The value that a text is.

    Raises:
        ValueError: it is none, or one that nobody asked for.
    """
    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text)} characters, and at most {LONGEST} are read")
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
    for _ in range(DEEPEST + 1):
        layer = [inner for outer in layer for inner in _inside(outer)]
    if layer:
        raise ValueError(f"it is deeper than {DEEPEST} levels")
    return value


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
