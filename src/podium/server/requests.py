"""The bodies of requests: parsed and checked at once from the bytes, and refused in words of the field at fault.

What is common to all routes' bodies. What a route's fields are is its own.


@@The object `podium` in a request's body: limits, workers, planner.

What OpenAI's fields do not say. What it comes to is the service's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeVar

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from podium.config import suggestion
from podium.errors import APIError
from podium.server.api_errors import invalid
from podium.server.settings import ServeSettings
from podium.types import Budget, Message, Question

B = TypeVar("B", bound="Body")
T = TypeVar("T")

_AT_ONCE = 64 * 2**10
"""Bytes that are checked within a few milliseconds, and so in the event loop."""
_MOST_FAULTS = 100
"""That are looked through for the one that the sender is told. A list has one at most; an object may have many."""
_MOST_SAID = 1000
"""Characters of what pydantic says of a fault, which may repeat what was sent."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""Of a worker or a planner."""
ListOf = Annotated[tuple[T, ...], Field(max_length=2048, fail_fast=True)]
"""A list, as long as OpenAI takes messages, that is looked through until the first fault."""


class BodyPart(BaseModel):
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

    ignorable: ClassVar[Mapping[str, tuple[tuple[Any, ...], str]]] = {}
    """Further fields: the values, besides null, with which they change nothing; why others are refused."""


Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=512)],
    ],
    Field(max_length=16),
]
"""The caller's own pairs, as OpenAI limits them."""


async def parse_body(model: type[B], raw: bytes, turn: asyncio.Lock) -> B:
    """The body in `raw`.

    Args:
        turn: held while a long one is checked in a thread, so that the event loop waits for one of them at most.

    Raises:
        APIError: 400, what is wrong with it and where.
    """
    if len(raw) <= _AT_ONCE:
        return _checked(model, raw)
    async with turn:
        return await asyncio.to_thread(_checked, model, raw)


def _checked(model: type[B], raw: bytes) -> B:
    try:
        body = model.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error, raw) from None
    for name, value in (body.model_extra or {}).items():
        if name not in model.ignorable:
            known = [field for field in (*model.model_fields, *model.ignorable) if name]
            raise invalid(
                f"Unknown field {name[:100]!r}; {suggestion(name[:100], known)}",
                name[:100],
                code="unknown_field",
            )
        values, reason = model.ignorable[name]
        if value is not None and not any(value == ignorable for ignorable in values):
            raise invalid(f"{name} cannot be honoured: {reason}", name, code="unsupported_field")
    return body


def _refusal(error: ValidationError, raw: bytes) -> APIError:
    if error.error_count() > _MOST_FAULTS:
        return invalid(
            f"The body has {error.error_count()} faults: more fields that are not known, or of a wrong kind, than can "
            "be named; send those that the API has.",
            code="invalid_value",
        )
    problems = error.errors(include_url=False, include_input=False)
    if problems[0]["type"] == "json_invalid":
        return invalid(f"The body is not JSON ({problems[0]['ctx']['error']}).", code="invalid_json")
    document = pydantic_core.from_json(raw)
    # Of the alternatives that a value may be, the one that was followed furthest is the one that was meant.
    placed = [(_place(document, problem["loc"]), problem) for problem in problems]
    # And of those at one place, one that is no text was meant as a list.
    place, problem = max(placed, key=lambda pair: (len(pair[0]), pair[1]["type"] != "string_type"))
    param = ".".join(str(part) for part in place)[:200]
    kind = problem["type"]
    if kind == "extra_forbidden":
        return invalid(f"Unknown field {param!r}; leave it out.", param, code="unknown_field")
    if kind == "missing":
        return invalid(f"The field {param!r} is missing.", param, code="missing_field")
    said = problem["msg"][:_MOST_SAID]
    if kind == "value_error":
        return invalid(said.removeprefix("Value error, "), param or None)
    wanted = re.sub(r"^Input should ", "it should ", said).replace("Tuple should", "it should")
    wanted = wanted.replace(" after validation", "")
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


Names = Annotated[ListOf[Name], Field(max_length=1000)]


class BudgetLimits(BodyPart):
    """Hard limits of one question."""

    calls: int | None = Field(default=None, ge=0, le=10**9)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=1e9)
    seconds: float | None = Field(default=None, gt=0, le=1e6)
    rounds: int | None = Field(default=None, ge=1)


class PodiumOptions(BodyPart):
    """How a question is to be answered."""

    budget: BudgetLimits | None = None
    allow: Names | None = None
    """Workers that may be asked; none: all."""
    deny: Names | None = None
    """Workers that may not be asked."""
    max_rounds: int | None = Field(default=None, ge=1)
    """As budget.rounds; of the two the smaller holds."""
    max_steps: int | None = Field(default=None, ge=1)
    """Of a plan."""
    early_stop: bool | None = None
    """Whether those whom a vote hears are asked in turn, the cheapest first, and nobody more once it is certain."""
    planner: Name | None = None
    """None: that of the model."""
    dry_run: bool | None = None
    """Plan and estimate, and call no worker."""


NO_OPTIONS = PodiumOptions()


def to_budget(wanted: PodiumOptions, settings: ServeSettings) -> Budget:
    """The limits that `wanted` asks for.

    Raises:
        APIError: more rounds than the server gives.
    """
    limited = wanted.budget
    asked = (wanted.max_rounds, None if limited is None else limited.rounds)
    rounds = min((count for count in asked if count is not None), default=settings.budget.rounds)
    if rounds > settings.most_rounds:
        where = "podium.max_rounds" if limited is None or limited.rounds is None else "podium.budget.rounds"
        raise invalid(f"{where}: this server gives at most {settings.most_rounds} rounds.", where)
    if limited is None:
        return Budget(rounds=rounds)
    return Budget(
        calls=limited.calls, tokens=limited.tokens, usd=limited.usd, seconds=limited.seconds, rounds=rounds
    )


def to_early_stop(wanted: PodiumOptions, settings: ServeSettings) -> bool:
    """Whether votes stop once they are certain."""
    return settings.early_stop if wanted.early_stop is None else wanted.early_stop


def to_steps(wanted: PodiumOptions, settings: ServeSettings) -> int:
    """The steps that a plan may have.

    Raises:
        APIError: more than the server gives.
    """
    steps = settings.max_steps if wanted.max_steps is None else wanted.max_steps
    if steps > settings.most_steps:
        raise invalid(
            f"podium.max_steps: this server lets a plan have at most {settings.most_steps}.",
            "podium.max_steps",
        )
    return steps


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request, understood."""

    question: Question
    model: str = "podium"
    """As the request names it."""
    budget: Budget = Budget()
    allow: tuple[str, ...] | None = None
    """Workers that may be asked; None: all."""
    deny: tuple[str, ...] = ()
    planner: str | None = None
    """None: the configured one."""
    worker: str | None = None
    """Who is asked straight, without a plan; None: the planner decides."""
    past: tuple[Message, ...] | None = None
    """What that worker is shown in place of the question's history: it goes on where it called its caller's tools."""
    max_steps: int = 5
    early_stop: bool = False
    """Whether votes stop once they are certain."""
    dry_run: bool = False
    seed: str = "0"
    metadata: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    keep: bool = True
    """Whether its trace is kept."""

    @property
    def planner_param(self) -> str:
        """The field that names the planner."""
        return "model" if self.model.startswith("podium/") else "podium.planner"
