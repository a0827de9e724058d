"""What a caller may send: bodies that are parsed and checked, the object `podium`, and the resulting request.

Errors name the field at fault. This module has what all routes share. The fields of a route are in its own module, and
`unsupported_fields` handles fields that Podium does not support.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails, from_json

from podium.errors import APIError
from podium.server.api_errors import invalid
from podium.server.keys import Caller, Keys
from podium.server.podium_details import PodiumDetails
from podium.types import Message, Question

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")

_INLINE_BYTES = 64 * 2**10
"""The most bytes that are checked on the event loop, which takes a few milliseconds."""
_MAX_FAULTS = 100
"""The most faults among which the reported fault is chosen. A list has one at most, but an object may have many."""
_MAX_MESSAGE_CHARS = 1000
"""The most characters of pydantic's message that are reported, since it may repeat what was sent."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""The name of a worker or a planner."""
ListOf = Annotated[tuple[T, ...], Field(max_length=2048, fail_fast=True)]
"""A list of at most as many items as OpenAI takes messages, checked up to its first fault."""


async def find_caller(request: Request) -> Caller:
    """The caller of a request, which then counts against the rate limit of its key.

    The key is in the Authorization header, or in `x-api-key`, where Anthropic's clients send it.

    Raises:
        APIError: 401 for an unknown key, 429 for too many requests.
    """
    keys: Keys = request.app.state.service.keys
    key = request.headers.get("x-api-key")
    authorization = request.headers.get("authorization")
    return await keys.authenticate(f"Bearer {key}" if authorization is None and key else authorization)


RequestCaller = Annotated[Caller, Depends(find_caller)]
"""A parameter of a route."""


class RefusedField(NamedTuple):
    """A field that changes what the answer means, so that it is refused."""

    reason: str
    values: tuple[Any, ...] = ()
    """Values, besides null, that change nothing."""
    for_worker: bool = False
    """Whether a worker that is called directly may get the field."""


class BodyPart(BaseModel):
    """A part of a body. `unsupported_fields` decides on fields that it does not have."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)

    hints: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Fields that are ignored, with their values, besides null, that change nothing."""
    refused: ClassVar[Mapping[str, RefusedField]] = {}
    has_any_field: ClassVar[bool] = False
    """Whether no field of the part is unknown."""
    is_ignored: ClassVar[bool] = False
    """Whether the whole part is ignored."""


class UnsupportedTool(BodyPart):
    """A tool of another type, such as one that a provider runs itself."""

    is_ignored: ClassVar[bool] = True

    type: str


class Body(BodyPart):
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    endpoint_fields: ClassVar[Container[str] | None] = None
    """The unsupported fields that the endpoint of one worker may get. None allows all."""


class PodiumField(BaseModel):
    """A part that only Podium has. Unknown fields are refused: they are typing errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=512)],
    ],
    Field(max_length=16),
]
"""The caller's own key-value pairs, within OpenAI's limits."""


async def read_body(model: type[B], request: Request) -> B:
    """Read and check the body of a request.

    Raises:
        APIError: 400, which names the fault and its field.
    """
    raw: bytes = (await request.receive())["body"]  # `BodyLimits` gives it in one piece.
    if len(raw) <= _INLINE_BYTES:
        return _parse(model, raw)
    async with request.app.state.service.parse_lock:
        return await asyncio.to_thread(_parse, model, raw)


class PodiumReply(BaseModel):
    """A reply in one piece. Its other fields are those of its API."""

    model_config = ConfigDict(extra="allow")

    podium: PodiumDetails | None = None
    """How the answer was made. A response that has no answer yet does not have it."""


def streamed_reply(description: str, *required: str) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses=`: a reply that comes whole, or with `stream` as server-sent events.

    Args:
        required: fields that a reply in one piece always has.
    """
    content = {
        "application/json": {"schema": {"type": "object", "required": list(required)}},
        "text/event-stream": {"schema": {"type": "string"}},
    }
    text = f"{description}; with `stream`, its events as server-sent events."
    return {200: {"model": PodiumReply, "description": text, "content": content}}


@cache
def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI description of the body, for a route that parses its own."""
    schema = {"schema": model.model_json_schema()}
    return {"requestBody": {"required": True, "content": {"application/json": schema}}}


def _parse(model: type[B], raw: bytes) -> B:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error, raw) from None


def _refusal(error: ValidationError, raw: bytes) -> APIError:
    if error.error_count() > _MAX_FAULTS:
        return invalid(
            f"The body has {error.error_count()} faults, too many to name them: fields that are unknown or of a wrong "
            "type. Send the fields that the API has.",
            code="invalid_value",
        )
    problems = error.errors(include_url=False, include_input=False)
    if problems[0]["type"] == "json_invalid":
        return invalid(f"The body is not JSON ({problems[0]['ctx']['error']}).", code="invalid_json")
    document = from_json(raw)
    # The alternative of a union that matched deepest is the one that the caller meant.
    faults = [(_path(document, problem["loc"]), problem) for problem in problems]
    # If one path has several faults, prefer a fault that is not about a string, since a list was meant.
    path, problem = max(faults, key=lambda pair: (len(pair[0]), pair[1]["type"] != "string_type"))
    return _fault_error(path, problem, {other["type"] for where, other in faults if where == path})


def _fault_error(path: list[int | str], problem: ErrorDetails, kinds: set[str]) -> APIError:
    """The error for one fault. `kinds` are pydantic's types of all faults on this path."""
    param = ".".join(str(part) for part in path)[:200]
    kind = problem["type"]
    if kind == "extra_forbidden":
        return invalid(f"Unknown field {param!r}; leave it out.", param, code="unknown_field")
    if kind == "union_tag_not_found":
        param = f"{param}.{problem['ctx']['discriminator']}".replace("'", "")
    if kind in ("missing", "union_tag_not_found"):
        return invalid(f"The field {param!r} is missing.", param, code="missing_field")
    message = problem["msg"][:_MAX_MESSAGE_CHARS]
    if kind == "value_error":
        return invalid(message.removeprefix("Value error, "), param or None)
    wanted = re.sub(r"^Input should ", "it should ", message).replace("Tuple should", "it should")
    wanted = wanted.replace(" after validation", "")
    if kind == "union_tag_invalid":
        field = problem["ctx"]["discriminator"]
        field = "'type'" if field.endswith("()") else field  # a function that reads the field `type`
        wanted = f"{field} should be one of {problem['ctx']['expected_tags']}"
        if "content" in path:
            wanted += "; workers read texts and images, so send a file as text or images, and speech as words"
    if {"string_type", "tuple_type"} <= kinds:
        wanted = "it should be a text or a list"
    return invalid(f"{param or 'The body'}: {wanted}.", param or None, code="invalid_value")


def _path(document: Any, loc: tuple[int | str, ...]) -> list[int | str]:
    """The path of a location in the document, without pydantic's names for the alternatives of a union."""
    path: list[int | str] = []
    for depth, part in enumerate(loc):
        in_list = isinstance(document, list) and isinstance(part, int) and part < len(document)
        if in_list or (isinstance(document, dict) and part in document):
            document = document[part]
        elif not isinstance(document, dict) or depth < len(loc) - 1 or "[" in str(part):
            continue  # An alternative, such as "literal['none','auto']", and not a missing field.
        path.append(part)
    return path


Names = Annotated[ListOf[Name], Field(max_length=1000)]


class BudgetLimits(PodiumField):
    calls: int | None = Field(default=None, ge=0, le=10**9)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=1e9)
    seconds: float | None = Field(default=None, gt=0, le=1e6)
    rounds: int | None = Field(default=None, ge=1)


class PodiumOptions(PodiumField):
    """The object `podium` of a body: what OpenAI's fields cannot say."""

    budget: BudgetLimits | None = None
    allow: Names | None = None
    """Workers that may be called. None allows all."""
    deny: Names | None = None
    """Workers that may not be called."""
    max_rounds: int | None = Field(default=None, ge=1)
    """The most plans of the question. If `budget.rounds` is smaller, that applies."""
    max_steps: int | None = Field(default=None, ge=1)
    early_stop: bool | None = None
    """Whether a vote calls its workers in turn, the cheapest first, and stops once its result is certain."""
    dry_run: bool | None = None
    """Plan and estimate the cost, without calling a worker."""
    plan_id: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    """The plan of an earlier dry run, to be run now; with `dry_run`, to be checked and estimated again."""
    workflow: Annotated[str, StringConstraints(min_length=1)] | None = None
    """The edited plan, in the workflow language. Without it, the plan is run as it is."""


NO_OPTIONS = PodiumOptions()
NO_LIMITS = BudgetLimits()


@dataclass(frozen=True)
class ChatRequest:
    """One parsed request for an answer, in the form that every route gives to the service."""

    question: Question
    options: PodiumOptions = NO_OPTIONS
    model: str = "podium"
    """The request's `model`, unchanged."""
    planner: str | None = None
    worker: str | None = None
    """The worker to call directly, without a plan. None if a planner decides."""
    messages: tuple[Message, ...] | None = None
    """All messages for that worker, unchanged."""
    seed: str = "0"
    metadata: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    keep: bool = True
    """Whether the trace is kept."""
    ignored: tuple[str, ...] = ()
    """Fields that were accepted without effect."""

    def allows(self, worker: str) -> bool:
        allow, deny = self.options.allow, self.options.deny or ()
        return worker not in deny and (allow is None or worker in allow)


def full_conversation(question: Question) -> tuple[Message, ...]:
    """The whole conversation of a question: its history, then its text unless the history has it already."""
    past = question.history
    earlier = next((message.content for message in reversed(past) if message.role == "user"), None)
    if past and past[-1].role == "tool" and earlier == question.text and not question.images:
        return past
    return (*past, Message(role="user", content=question.text, images=question.images))
