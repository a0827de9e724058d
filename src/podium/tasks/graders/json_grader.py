"""The grader of JSON: compares a JSON value with the gold value, and checks it against a JSON Schema if one is set.

Values are compared first, so only answers with the gold values are checked against the schema. The work is bounded:
`pattern` has a time limit, `uniqueItems` compares canonical texts, and `patternProperties` is refused. References may
only point into the schema; `format` is not checked.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from pydantic import Field, field_validator

from podium.errors import ConfigError, GraderError
from podium.reading.answer import to_nfkc
from podium.reading.code_blocks import last_block
from podium.reading.thoughts import without_thoughts
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.extraction import extract
from podium.tasks.graders.text_graders import matches
from podium.tasks.task import Grade

MAX_CHARACTERS = 100_000
MAX_DEPTH = 64
_LONGEST_NUMBER = 100
_ANSWER = re.compile(r"^[ \t*_#>]*(?:final )?answer[ \t*_]*:[*_]*", re.IGNORECASE | re.MULTILINE)
"""An "answer:" without quotes; in quotes it is a key."""


class Json(GraderSettings):
    """1 when the response gives a JSON value that equals the gold value and fits the schema.

    The answer is the content of the last `<answer>...</answer>`, else the text after the last `Answer:`, else the whole
    response; of that, if there are fenced blocks, only the last one that is tagged as JSON, else the last that can be
    read. It must be strict JSON, with nothing before and after it. The order of keys does not count, but the order of
    lists does. `1` equals `1.0`, but not `true` or `"1"`. Not accepted: values in prose, comments, trailing commas,
    repeated keys, NaN, and a value of more than 100,000 characters or 64 levels or with a number of more than 100
    digits. With `extra_keys`, the gold answer `{}` and a schema, the schema alone decides.
    """

    kind: Literal["json"] = "json"
    json_schema: dict[str, Any] = Field(default_factory=dict)
    """The JSON Schema (draft 2020-12) that the value must fit. If empty, any value fits."""
    extra_keys: bool = False
    """Whether objects may have keys that the gold answer lacks."""
    absolute: float = Field(default=1e-9, ge=0)
    """The largest absolute difference from a gold number."""
    relative: float = Field(default=0.0, ge=0)
    """The largest difference as a share of the gold number; the larger of the two tolerances counts."""

    @field_validator("json_schema")
    @classmethod
    def _readable(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema:
            check_schema(schema)
        return schema

    def gold_problem(self, gold: str) -> str | None:
        try:
            wanted = _read(gold)
        except ValueError as error:
            return f"the gold answer is not JSON that can be graded: {error}"
        if self.extra_keys:
            return None if wanted != {} or self.json_schema else "the gold answer {} accepts every object"
        try:
            fitting = not self.json_schema or fits_schema(self.json_schema, wanted)
        except GraderError as error:
            return f"the gold answer cannot be checked: {error}"
        return None if fitting else "the gold answer does not fit the schema"

    async def __call__(self, response: str, gold: str) -> Grade:
        answer = _value_text(without_thoughts(response).strip())
        try:
            value, wanted = _read(answer), _read(gold)
        except ValueError:
            return Grade(0.0, answer or None)
        right = self._same(value, wanted)
        if right and self.json_schema:
            right = await asyncio.to_thread(fits_schema, self.json_schema, value)
        return Grade(float(right), answer)

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
            # Differences of integers are exact, however long they are.
            return _is_number(value) and abs(value - wanted) <= self._tolerance(wanted)
        if isinstance(wanted, str):
            return isinstance(value, str) and to_nfkc(value) == to_nfkc(wanted)
        return type(value) is type(wanted) and bool(value == wanted)

    def _tolerance(self, wanted: int | float) -> float:
        return max(self.absolute, self.relative * abs(wanted))


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


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is invalid, or whose time cannot be bounded.

    Raises:
        ValueError: why, in half a sentence.
        ConfigError: the package jsonschema is not installed.
    """
    validator = _validator(schema)
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"it is no JSON Schema: {error.message}") from None
    for part in _objects(schema):
        if "patternProperties" in part:
            raise ValueError("patternProperties are not read; name the keys in properties")
        reference = part.get("$ref", "#")
        if isinstance(reference, str) and not reference.startswith("#"):
            raise ValueError(f"the reference {reference!r} leaves the schema; put what it names under $defs")


def fits_schema(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value fits a schema.

    Raises:
        GraderError: a reference leads nowhere, or a pattern takes too long.
        ConfigError: the package jsonschema is not installed.
    """
    validator = _validator(schema)
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - comes with jsonschema

    try:
        return bool(validator.is_valid(value))
    except (Unresolvable, RecursionError) as error:
        raise GraderError(
            f"The JSON Schema cannot be followed: {error}; correct the task's schema."
        ) from None


def _validator(schema: Mapping[str, Any]) -> Any:
    bounded = _bounded()
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema

    return bounded(schema, registry=Registry())


@cache
def _bounded() -> Any:
    try:
        from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ConfigError(
            "A JSON Schema needs the package jsonschema, which is not installed: "
            "pip install 'podium-conductor[tasks]'."
        ) from None
    return validators.extend(Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique})


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415

    if isinstance(value, str) and not matches(pattern, value, whole=False):
        yield ValidationError("it does not match the pattern")


def _unique(validator: Any, wanted: bool, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415

    if wanted and isinstance(value, list) and len({_canonical(item) for item in value}) < len(value):
        yield ValidationError("it contains an item twice")


def _canonical(value: Any) -> str:
    """A text that is the same for equal values only: 1 equals 1.0, but not true."""
    return json.dumps(_with_ints(value), sort_keys=True)


def _with_ints(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_ints(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_ints(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _objects(inner)
