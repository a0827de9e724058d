"""The body of a request for a response: its fields, and the request that they make.

As lenient as OpenAI (null is the same as leaving a field out).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.errors import UsageError
from podium.server.api_errors import invalid, missing
from podium.server.keys import Caller
from podium.server.leniency import Leftover, settle_leftover, takes_extra
from podium.server.openai.chat_body import HINTS, ChatBody, ImageAddress, StreamOptions
from podium.server.openai.conversation import (
    MAX_TOOLS,
    Choice,
    FlatChoice,
    ForeignChoice,
    ForeignTool,
    FunctionName,
    SentPart,
    call_id,
    check_tool_choice,
    resume_after_tools,
    to_question,
    tool_kind,
)
from podium.server.requests import (
    NO_OPTIONS,
    Body,
    BodyPart,
    ChatRequest,
    ListOf,
    Metadata,
    Name,
    PodiumOptions,
    Unsupported,
    requested_budget,
    requested_early_stop,
    requested_steps,
)
from podium.server.service import Service
from podium.server.worker_selection import resolve_model
from podium.trace import Trace
from podium.types import AnswerOptions, Message, ToolCall

_UNSUPPORTED = Unsupported("Podium does not support it.", kind="never")
INSTRUCTIONS_KEY = "podium.instructions"
"""Metadata key of a trace whose first message is the instructions of a response."""
_ID = re.compile(r"resp_([0-9a-f]{32})")


class InputText(BodyPart):
    type: Literal["input_text", "text"]
    text: str


class InputImage(BodyPart):
    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        **ImageAddress.unsupported,
        "file_id": Unsupported("there are no stored files; send the image.", kind="never"),
    }

    type: Literal["input_image"]
    image_url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:. The worker's provider fetches it; Podium does not."""


class OutputText(BodyPart):
    """The text of an earlier answer."""

    type: Literal["output_text"]
    text: str
    annotations: tuple[Any, ...] | None = None
    logprobs: tuple[Any, ...] | None = None


class Refusal(BodyPart):
    type: Literal["refusal"]
    refusal: str


Content = Annotated[InputText | InputImage | OutputText | Refusal, Field(discriminator="type")]


class MessageItem(BodyPart):
    """A message of a user, or an earlier answer."""

    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Annotated[ListOf[Content], Field(min_length=1)]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class CallItem(BodyPart):
    """A tool call of an earlier answer."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class ResultItem(BodyPart):
    """The result of the caller's tool."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Annotated[ListOf[InputText], Field(min_length=1)]
    id: str | None = None
    status: str | None = None


class ReasoningItem(BodyPart):
    """Progress from an earlier response; not part of the conversation."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: tuple[Any, ...] = ()
    content: tuple[Any, ...] | None = None
    encrypted_content: str | None = None
    status: str | None = None


def _kind(item: Any) -> str:
    return str(item.get("type") or "message") if isinstance(item, dict) else "message"


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[ResultItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


class FlatTool(SentPart):
    """A function, in the flat form that the Responses API uses."""

    type: Literal["function"]
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


_AnyTool = Annotated[
    Annotated[FlatTool, Tag("function")] | Annotated[ForeignTool, Tag("foreign")], Discriminator(tool_kind)
]
_ToolChoice = (
    Choice
    | Annotated[
        Annotated[FlatChoice, Tag("function")] | Annotated[ForeignChoice, Tag("foreign")],
        Discriminator(tool_kind),
    ]
)


class PlainText(BodyPart):
    type: Literal["text", "json_object"]


class SchemaText(SentPart):
    type: Literal["json_schema"]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextOptions(BodyPart):
    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        "verbosity": ChatBody.unsupported["verbosity"]._replace(values=("medium",))
    }

    format: Annotated[PlainText | SchemaText, Field(discriminator="type")] | None = None


class ResponseBody(Body):
    """The body of a request for a response."""

    unsupported: ClassVar[Mapping[str, Unsupported]] = {
        **HINTS,
        "access_programs": _UNSUPPORTED,
        "background": Unsupported(
            "ask with POST /api/ask, and follow the trace's events.", (False,), kind="never"
        ),
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

    model: Name
    """podium, podium/PLANNER or a worker's name."""
    input: str | Annotated[ListOf[Item], Field(min_length=1)]
    instructions: str | None = None
    """The first system message. A response that continues this one does not inherit it."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=10**9)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    tools: Annotated[ListOf[_AnyTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: _ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    metadata: Metadata | None = None
    user: str | None = None
    safety_identifier: str | None = None
    """OpenAI's new name for `user`."""
    prompt_cache_key: str | None = None
    """A hint for a provider's cache; accepted without effect."""
    previous_response_id: str | None = None
    store: bool | None = None
    """False: the trace is not kept, so no later response can continue this one."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    podium: PodiumOptions | None = None


async def read_response(body: ResponseBody, service: Service, caller: Caller) -> ChatRequest:
    """The request that `body` makes.

    Raises:
        APIError: the request cannot be honoured.
    """
    wishes, settings = body.podium or NO_OPTIONS, service.settings
    planner, worker = resolve_model(body.model, wishes.planner, service.pool, caller)
    metadata = dict(body.metadata or {})
    if INSTRUCTIONS_KEY in metadata:
        raise invalid(f"metadata: {INSTRUCTIONS_KEY} is Podium's own; take another name.", "metadata")
    previous = await _previous_messages(body, service, caller)
    new = (
        (Message(role="user", content=body.input),) if isinstance(body.input, str) else _messages(body.input)
    )
    instructions = (Message(role="system", content=body.instructions),) if body.instructions else ()
    if instructions:
        metadata[INSTRUCTIONS_KEY] = "true"
    direct = takes_extra(service.pool, worker)
    leftover = settle_leftover(body, strict=settings.strict, passes=direct)
    if direct:
        leftover = _to_chat(body, leftover)
    messages = (*instructions, *previous, *new)
    options = _options(body, leftover.extra, strict=settings.strict)
    request = ChatRequest(
        question=to_question(messages, options, direct=worker is not None, param="input"),
        messages=None if worker is None else messages,
        model=body.model,
        budget=requested_budget(wishes, settings),
        allow=wishes.allow,
        deny=wishes.deny or (),
        planner=planner,
        worker=worker,
        max_steps=requested_steps(wishes, settings),
        early_stop=requested_early_stop(wishes, settings),
        dry_run=bool(wishes.dry_run),
        seed=token_hex(8),
        metadata=metadata,
        user=body.user if body.user is not None else body.safety_identifier,
        keep=body.store is not False,
        ignored=leftover.ignored,
    )
    return await resume_after_tools(request, service, caller)


async def find_trace(response_id: str, service: Service, caller: Caller, param: str) -> Trace:
    """The trace of a response.

    Raises:
        APIError: 404 for an unknown response or another key's; 400 if the server keeps no traces.
    """
    if service.store is None:
        raise invalid("This server keeps no traces, so nothing can follow on a response.", param)
    match = _ID.fullmatch(response_id)
    unknown = missing(
        f"There is no response {response_id[:64]!r} that you made.", param, code="response_not_found"
    )
    if match is None:
        raise unknown
    try:
        return await service.store.get(match[1], owner=None if caller.admin else caller.name)
    except UsageError:
        raise unknown from None


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
    past = question.history[1:] if INSTRUCTIONS_KEY in trace.metadata else question.history
    if not past or past[-1].role != "tool":
        past = (*past, Message(role="user", content=question.text, images=question.images))
    calls = tuple(
        call.model_copy(update={"id": call_id(trace.id, number)})
        for number, call in enumerate(trace.tool_calls)
    )
    return (*past, Message(role="assistant", content=trace.answer, tool_calls=calls))


def _messages(items: tuple[Item, ...]) -> tuple[Message, ...]:
    """The input items as messages. Adjacent tool calls become one assistant message."""
    messages: list[Message] = []
    for item in items:
        match item:
            case MessageItem():
                role = "system" if item.role == "developer" else item.role
                messages.append(Message(role=role, content=_text(item.content), images=_images(item.content)))
            case CallItem():
                call = ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)
                if messages and messages[-1].role == "assistant":
                    last = messages.pop()
                    messages.append(last.model_copy(update={"tool_calls": (*last.tool_calls, call)}))
                else:
                    messages.append(Message(role="assistant", content="", tool_calls=(call,)))
            case ResultItem():
                messages.append(Message(role="tool", content=_text(item.output), tool_call_id=item.call_id))
    return tuple(messages)


def _text(content: str | tuple[InputText, ...] | tuple[Content, ...]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        part.refusal if isinstance(part, Refusal) else part.text
        for part in content
        if not isinstance(part, InputImage)
    )


def _images(content: str | tuple[Content, ...]) -> tuple[str, ...]:
    if isinstance(content, str):
        return ()
    return tuple(part.image_url for part in content if isinstance(part, InputImage))


def _to_chat(body: ResponseBody, leftover: Leftover) -> Leftover:
    """What goes to one worker's endpoint, in the form of a chat completion."""
    given, extra = leftover.extra, {}
    foreign = ResponseBody.unsupported.keys() - ChatBody.unsupported.keys()
    extra = {name: value for name, value in given.items() if name not in foreign | {"reasoning"}}
    reasoning, verbosity = (
        given.get("reasoning"),
        body.text and (body.text.model_extra or {}).get("verbosity"),
    )
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        extra["reasoning_effort"] = reasoning["effort"]
    if verbosity:
        extra["verbosity"] = verbosity
    if extra.get("top_logprobs"):
        extra["logprobs"] = True
    ignored = [name for name in leftover.ignored if name != "text.verbosity"]
    return Leftover((*ignored, *sorted(foreign & given.keys())), extra)


def _options(body: ResponseBody, extra: dict[str, Any], *, strict: bool) -> AnswerOptions:
    functions = [tool for tool in body.tools or () if isinstance(tool, FlatTool)]
    choice, parallel = check_tool_choice(
        [tool.name for tool in functions], body.tool_choice, body.parallel_tool_calls, strict=strict
    )
    tools = [{name: value for name, value in tool.sent.items() if name != "type"} for tool in functions]
    return AnswerOptions(
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        tools=tuple({"type": "function", "function": tool} for tool in tools),
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
    assert isinstance(text_format, SchemaText)
    schema = {name: value for name, value in text_format.sent.items() if name != "type"}
    return {"type": "json_schema", "json_schema": schema}
