"""The body of a request for a response: its fields, and their translation into a `ChatRequest`.

As with OpenAI, null is the same as leaving a field out.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError

from podium.config import suggestion
from podium.server.api_errors import invalid
from podium.server.conversation import stay_with_worker, to_question
from podium.server.keys import Caller
from podium.server.openai.chat_body import ChatBody, JsonSchema, OpenAIBody, PlainFormat
from podium.server.openai.response_items import Item, find_trace, to_conversation, to_messages
from podium.server.openai.tools import (
    MAX_TOOLS,
    Choice,
    FlatChoice,
    Function,
    UnsupportedChoice,
    check_tool_choice,
    tool_kind,
)
from podium.server.requests import (
    NO_OPTIONS,
    BodyPart,
    ChatRequest,
    ListOf,
    Unsupported,
    UnsupportedTool,
)
from podium.server.served_answers import answer_from_trace
from podium.server.service import Service
from podium.server.unsupported_fields import HINTS, UnsupportedFields, handle_unsupported, takes_extra
from podium.server.worker_selection import resolve_model
from podium.trace import Trace
from podium.types import AnswerOptions, Message

_UNSUPPORTED = Unsupported("Podium does not support it.", kind="never")
INSTRUCTIONS_KEY = "podium.instructions"
"""Metadata key that marks a trace whose first message is the `instructions` of a response."""
RESPONSE_KEY = "podium.response"
"""Metadata key of a stored response: its `EchoedFields`, as JSON."""
OWN_KEYS = (INSTRUCTIONS_KEY, RESPONSE_KEY)


class EchoedFields(BaseModel):
    """The fields of a request that its response repeats, and the time of the request. The trace's metadata keeps
    them."""

    created: int
    model: str
    previous: str | None = None
    """The id of the response that this one continues."""
    echo: dict[str, Any] = {}
    """Further fields, by the names that the response has for them."""

    @staticmethod
    def read(trace: Trace) -> EchoedFields | None:
        """The fields in a trace's metadata. None if the trace is no response, whatever a client wrote there."""
        try:
            return EchoedFields.model_validate_json(trace.metadata.get(RESPONSE_KEY, ""))
        except ValidationError:
            return None


class FlatTool(Function):
    """A function, in the flat form that the Responses API uses."""

    type: Literal["function"]


_AnyTool = Annotated[
    Annotated[FlatTool, Tag("function")] | Annotated[UnsupportedTool, Tag("foreign")],
    Discriminator(tool_kind),
]
_ToolChoice = (
    Choice
    | Annotated[
        Annotated[FlatChoice, Tag("function")] | Annotated[UnsupportedChoice, Tag("foreign")],
        Discriminator(tool_kind),
    ]
)


class JsonSchemaFormat(JsonSchema):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class TextOptions(BodyPart):
    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        "verbosity": ChatBody.unsupported["verbosity"]._replace(values=("medium",))
    }

    format: Annotated[PlainFormat | JsonSchemaFormat, Field(discriminator="type")] | None = None


class ResponseBody(OpenAIBody):
    """The body of a request for a response."""

    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        **HINTS,
        "access_programs": _UNSUPPORTED,
        "background_options": _UNSUPPORTED,
        "context_management": Unsupported("Podium never compacts a conversation by itself."),
        "conversation": Unsupported(
            "there are no stored conversations; use previous_response_id.", kind="never"
        ),
        "image": _UNSUPPORTED,
        "include": Unsupported("there is nothing to include.", ([],)),
        "max_tool_calls": Unsupported("there are no tools of the server's."),
        "prompt": Unsupported("there are no stored prompts; write the input.", kind="never"),
        "truncation": Unsupported("Podium never truncates the input.", ("disabled",)),
    }

    input: str | Annotated[ListOf[Item], Field(min_length=1)]
    instructions: str | None = None
    """The first system message. A response that continues this one does not inherit it."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=10**9)
    tools: Annotated[ListOf[_AnyTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: _ToolChoice | None = None
    text: TextOptions | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    """Whether the reply comes at once, while the response is made without its caller."""


async def read_response(body: ResponseBody, service: Service, caller: Caller) -> ChatRequest:
    """Translate `body` into a `ChatRequest`."""
    options = body.podium or NO_OPTIONS
    planner, worker = resolve_model(body.model, options.planner, service.pool, caller)
    metadata = dict(body.metadata or {})
    for own in OWN_KEYS:
        if own in metadata:
            raise invalid(f"metadata: {own} is Podium's own; take another name.", "metadata")
    previous = await _previous_messages(body, service, caller)
    new = await to_conversation(body.input, service, caller)
    instructions = (Message(role="system", content=body.instructions),) if body.instructions else ()
    if instructions:
        metadata[INSTRUCTIONS_KEY] = "true"
    direct = takes_extra(service.pool, worker)
    unsupported = handle_unsupported(body, passes=direct)
    if direct:
        unsupported = _to_chat(body, unsupported)
    messages = (*instructions, *previous, *new)
    answer_options = _options(body, unsupported.extra)
    request = ChatRequest(
        question=to_question(messages, answer_options, direct=worker is not None, param="input"),
        messages=None if worker is None else messages,
        options=options,
        model=body.model,
        planner=planner,
        worker=worker,
        seed=token_hex(8),
        metadata=metadata,
        user=body.end_user,
        keep=body.store is not False,
        ignored=unsupported.ignored,
    )
    return await stay_with_worker(request, service, caller)


async def _previous_messages(body: ResponseBody, service: Service, caller: Caller) -> tuple[Message, ...]:
    """The conversation up to and including the response that this one continues."""
    if body.previous_response_id is None:
        return ()
    trace = await find_trace(body.previous_response_id, service, caller, "previous_response_id")
    if trace.answer is None:
        raise invalid(
            f"{body.previous_response_id} has no answer to go on from; ask it again.", "previous_response_id"
        )
    question = trace.question
    if INSTRUCTIONS_KEY in trace.metadata:
        question = question.model_copy(update={"history": question.history[1:]})
    return to_messages(question, answer_from_trace(trace))


def _to_chat(body: ResponseBody, unsupported: UnsupportedFields) -> UnsupportedFields:
    """Convert the fields for one worker's endpoint to the fields of a chat completion.

    Raises:
        APIError: 400 for a field that only chat completions have, since it would replace a field that Podium sets.
    """
    passed = unsupported.extra
    for name in sorted(passed.keys() & (ChatBody.model_fields.keys() - ResponseBody.model_fields.keys())):
        raise invalid(
            f"Unknown field {name!r}; {suggestion(name, list(ResponseBody.model_fields))}",
            name,
            code="unknown_field",
        )
    foreign = ResponseBody.unsupported.keys() - ChatBody.unsupported.keys()
    extra = {name: value for name, value in passed.items() if name not in foreign | {"reasoning"}}
    reasoning, verbosity = (
        passed.get("reasoning"),
        body.text and (body.text.model_extra or {}).get("verbosity"),
    )
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        extra["reasoning_effort"] = reasoning["effort"]
    if verbosity:
        extra["verbosity"] = verbosity
    if extra.get("top_logprobs"):
        extra["logprobs"] = True
    ignored = [name for name in unsupported.ignored if name != "text.verbosity"]
    return UnsupportedFields((*ignored, *sorted(foreign & passed.keys())), extra)


def _options(body: ResponseBody, extra: dict[str, Any]) -> AnswerOptions:
    functions = [tool for tool in body.tools or () if isinstance(tool, FlatTool)]
    choice, parallel = check_tool_choice(
        [tool.name for tool in functions], body.tool_choice, body.parallel_tool_calls
    )
    return AnswerOptions(
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        tools=tuple({"type": "function", "function": tool.sent} for tool in functions),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=_response_format(body),
        extra=extra,
    )


def _response_format(body: ResponseBody) -> dict[str, Any] | None:
    text_format = None if body.text is None else body.text.format
    if text_format is None or text_format.type == "text":
        return None
    if text_format.type == "json_object":
        return {"type": "json_object"}
    assert isinstance(text_format, JsonSchemaFormat)
    return {"type": "json_schema", "json_schema": text_format.sent}
