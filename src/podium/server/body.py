"""The bodies of requests: parsed and checked at once from the bytes, and refused in words of the field at fault.

What is common to all routes' bodies. What a route's fields are is its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from podium.config import suggestion
from podium.errors import Complaint
from podium.server.complaints import invalid

B = TypeVar("B", bound="Body")


class Part(BaseModel):
    """A part of a body; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Body(BaseModel):
    """A whole body. Fields that OpenAI knows and Podium cannot honour are let pass where they change nothing."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        strict=True,
        allow_inf_nan=False,
        json_schema_extra={"additionalProperties": False},
    )

    idle: ClassVar[Mapping[str, tuple[tuple[Any, ...], str]]] = {}
    """Further fields: the values, besides null, with which they change nothing; why others are refused."""


Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=512)],
    ],
    Field(max_length=16),
]
"""The caller's own pairs, as OpenAI limits them."""


def read(model: type[B], raw: bytes) -> B:
    """The body in `raw`.

    Raises:
        Complaint: 400, what is wrong with it and where.
    """
    try:
        body = model.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error, raw) from None
    for name, value in (body.model_extra or {}).items():
        if name not in model.idle:
            known = [field for field in (*model.model_fields, *model.idle) if name]
            raise invalid(
                f"Unknown field {name[:100]!r}; {suggestion(name, known)}", name[:100], code="unknown_field"
            )
        values, reason = model.idle[name]
        if value is not None and not any(value == idle for idle in values):
            raise invalid(f"{name} cannot be honoured: {reason}", name, code="unsupported_field")
    return body


def _refusal(error: ValidationError, raw: bytes) -> Complaint:
    problems = error.errors(include_url=False)
    if problems[0]["type"] == "json_invalid":
        return invalid(f"The body is not JSON ({problems[0]['ctx']['error']}).", code="invalid_json")
    document = pydantic_core.from_json(raw)
    # Of the alternatives that a value may be, the one that was followed furthest is the one that was meant.
    placed = [(_place(document, problem["loc"]), problem) for problem in problems]
    place, problem = max(placed, key=lambda pair: len(pair[0]))
    param = ".".join(str(part) for part in place)[:200]
    kind = problem["type"]
    if kind == "extra_forbidden":
        return invalid(f"Unknown field {param!r}; leave it out.", param, code="unknown_field")
    if kind == "missing":
        return invalid(f"The field {param!r} is missing.", param, code="missing_field")
    if kind == "value_error":
        return invalid(problem["msg"].removeprefix("Value error, "), param or None)
    wanted = re.sub(r"^Input should ", "it should ", problem["msg"]).replace("Tuple should", "it should")
    if kind == "union_tag_invalid":
        wanted = f"{problem['ctx']['discriminator']} should be one of {problem['ctx']['expected_tags']}"
    others = {other["type"] for where, other in placed if where == place}
    if {"string_type", "tuple_type"} <= others:
        wanted = "it should be a text or a list"
    return invalid(f"{param or 'The body'}: {wanted}.", param or None, code="invalid_value")


def _place(document: Any, loc: tuple[int | str, ...]) -> list[int | str]:
    """A location as the document has it, without pydantic's names of alternatives."""
    place: list[int | str] = []
    for depth, part in enumerate(loc):
        inside = _inside(document, part)
        if inside is not None:
            (document,) = inside
        elif not (isinstance(document, dict) and isinstance(part, str) and depth == len(loc) - 1):
            continue
        place.append(part)
    return place


def _inside(document: Any, part: int | str) -> tuple[Any] | None:
    """What stands under `part`; None: nothing does."""
    if isinstance(document, list) and isinstance(part, int):
        return (document[part],) if part < len(document) else None
    return (document[part],) if isinstance(document, dict) and part in document else None
