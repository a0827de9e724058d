"""JSON Schema (draft 2020-12), bounded: what a response can make slow is done in another way, or refused.

`pattern` is matched within a time limit, `uniqueItems` by sorting; `patternProperties` is refused. Nothing is
fetched: references go to the schema itself. `format` describes, and does not check.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from podium.errors import ConfigError, GraderError
from podium.tasks.graders.regex import matches


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no schema, or one that cannot be bounded.

    Raises:
        ValueError: why, in half a sentence.
        ConfigError: the package is missing.
    """
    validator = _validator(schema)
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"it is no JSON Schema: {error.message}") from None
    for place in _tables(schema):
        if "patternProperties" in place:
            raise ValueError("patternProperties are not read; name the keys in properties")
        reference = place.get("$ref", "#")
        if isinstance(reference, str) and not reference.startswith("#"):
            raise ValueError(f"the reference {reference!r} leaves the schema; put what it names under $defs")


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value fits a schema.

    Raises:
        GraderError: a reference to nothing, or a pattern that takes too long.
        ConfigError: the package is missing.
    """
    validator = _validator(schema)
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - comes with jsonschema

    try:
        return bool(validator.is_valid(value))
    except (Unresolvable, RecursionError) as error:
        raise GraderError(f"The JSON Schema cannot be followed: {error}; mend the task's schema.") from None


def _validator(schema: Mapping[str, Any]) -> Any:
    bounded = _bounded()
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema

    return bounded(schema, registry=Registry())


@cache
def _bounded() -> Any:
    """The class of validators: a constant that is made when first needed."""
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
        yield ValidationError("it holds an item twice")


def _canonical(value: Any) -> str:
    """The same text for equal values, and another for others: 1 and 1.0 are equal, 1 and true are not."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _tables(value: Any) -> Iterator[Mapping[str, Any]]:
    """All objects in a schema."""
    if isinstance(value, Mapping):
        yield value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _tables(inner)
