"""The body of a request for a response, as far as Podium can honour it.

Lenient where OpenAI is (null is as good as nothing); what would be dropped is refused.


@@From the body of a request for a response to what is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.errors import UsageError
from podium.server.api_errors import invalid, missing
from podium.server.keys import Caller
from podium.server.openai.chat_body import HINTS
from podium.server.openai.conversation import (
    MAX_TOOLS,
    FunctionName,
    call_id,
    check_choice,
    resume_after_tools,
    to_messages,
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
    to_budget,
    to_early_stop,
    to_steps,
)
from podium.server.service import Service
from podium.server.worker_selection import resolve_model
from podium.trace import Trace
from podium.types import AnswerOptions, Message, Question, ToolCall

_ABSENT = "Podium has no such thing."


class InputText(BodyPart):
    type: Literal["input_text", "text"]
    text: str


class InputImage(BodyPart):
    type: Literal["input_image"]
    image_url: Annotated[str, StringConstraints(pattern=r"^(https?://|data:image/)")]
    """https: or data:; a worker's provider fetches it, not Podium."""
    detail: Literal["auto"] | None = None
    file_id: None = None


class OutputText(BodyPart):
    """Of an answer that is given back."""

    type: Literal["output_text"]
    text: str
    annotations: tuple[Any, ...] | None = None
    logprobs: tuple[Any, ...] | None = None


class Refusal(BodyPart):
    type: Literal["refusal"]
    refusal: str


Content = Annotated[InputText | InputImage | OutputText | Refusal, Field(discriminator="type")]


class MessageItem(BodyPart):
    """A message, of a user or given back."""

    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Annotated[ListOf[Content], Field(min_length=1)]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class CallItem(BodyPart):
    """A call that is given back."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class ResultItem(BodyPart):
    """What the caller's tool gave."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Annotated[ListOf[InputText], Field(min_length=1)]
    id: str | None = None
    status: str | None = None


class ReasoningItem(BodyPart):
    """Progress that a response told of; no part of the conversation."""

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


class FlatTool(BodyPart):
    """A function, in the flat form of responses."""

    type: Literal["function"]
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FlatChoice(BodyPart):
    type: Literal["function"]
    name: FunctionName


class PlainText(BodyPart):
    type: Literal["text", "json_object"]


class SchemaText(BodyPart):
    type: Literal["json_schema"]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextWanted(BodyPart):
    format: Annotated[PlainText | SchemaText, Field(discriminator="type")] | None = None
    verbosity: Literal["medium"] | None = None


class ResponseStreamOptions(BodyPart):
    include_obfuscation: Literal[False] | None = None
    """Events are not padded."""


class ResponseBody(Body):
    """The body of a request for a response."""

    ignorable: ClassVar[Mapping[str, tuple[tuple[Any, ...], str]]] = {
        **HINTS,
        "access_programs": ((), _ABSENT),
        "background": ((False,), "ask with POST /api/ask, and follow the trace's events."),
        "background_options": ((), _ABSENT),
        "context_management": ((), _ABSENT),
        "conversation": ((), "there are no stored conversations; use previous_response_id."),
        "image": ((), _ABSENT),
        "include": (([],), "there is nothing to include."),
        "max_tool_calls": ((), "there are no tools of the server's."),
        "prompt": ((), "there are no stored prompts; write the input."),
        "reasoning": (({},), "not every worker can be told; set it in the pool file, with extra."),
        "top_logprobs": ((0,), "the probabilities of workers' tokens are not known here."),
        "truncation": (("disabled",), "nothing is cut off in silence."),
    }

    model: Name
    """podium, podium/PLANNER or a worker's name."""
    input: str | Annotated[ListOf[Item], Field(min_length=1)]
    instructions: str | None = None
    """The first system message; not carried over to what follows on this response."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=10**9)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    tools: Annotated[ListOf[FlatTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | FlatChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextWanted | None = None
    metadata: Metadata | None = None
    user: str | None = None
    safety_identifier: str | None = None
    """As `user`, under its new name."""
    prompt_cache_key: str | None = None
    """A hint to a provider's own cache: taken, and without effect."""
    previous_response_id: str | None = None
    store: bool | None = None
    """False: no trace is kept, and nothing can follow on the response."""
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    podium: PodiumOptions | None = None


INSTRUCTED = "podium.instructions"
"""In a trace's metadata: its first message is the instructions of a response."""
_ID = re.compile(r"resp_([0-9a-f]{32})")


async def read_response(body: ResponseBody, service: Service, caller: Caller) -> ChatRequest:
    """What `body` asks.

    Raises:
        APIError: it cannot be asked so.
    """
    wanted, settings = body.podium or NO_OPTIONS, service.settings
    planner, worker = resolve_model(body.model, wanted.planner, service.pool, caller)
    metadata = dict(body.metadata or {})
    if INSTRUCTED in metadata:
        raise invalid(f"metadata: {INSTRUCTED} is Podium's own; take another name.", "metadata")
    before = await _before(body, service, caller)
    given = (
        (Message(role="user", content=body.input),) if isinstance(body.input, str) else _messages(body.input)
    )
    instructions = (Message(role="system", content=body.instructions),) if body.instructions else ()
    if instructions:
        metadata[INSTRUCTED] = "true"
    text, history, message = to_messages((*instructions, *before, *given), "input")
    asked = ChatRequest(
        question=Question(
            text=text,
            history=history,
            images=() if message is None else message.images,
            options=_options(body),
        ),
        model=body.model,
        budget=to_budget(wanted, settings),
        allow=wanted.allow,
        deny=wanted.deny or (),
        planner=planner,
        worker=worker,
        max_steps=to_steps(wanted, settings),
        early_stop=to_early_stop(wanted, settings),
        dry_run=bool(wanted.dry_run),
        seed=token_hex(8),
        metadata=metadata,
        user=body.user if body.user is not None else body.safety_identifier,
        keep=body.store is not False,
    )
    return await resume_after_tools(asked, service, caller)


async def trace_of(response_id: str, service: Service, caller: Caller, param: str) -> Trace:
    """The trace of a response.

    Raises:
        APIError: 404, there is none, or it is another key's; 400, this server keeps none.
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


async def _before(body: ResponseBody, service: Service, caller: Caller) -> tuple[Message, ...]:
    """The conversation up to and with the response on which this one follows."""
    if body.previous_response_id is None:
        return ()
    trace = await trace_of(body.previous_response_id, service, caller, "previous_response_id")
    if trace.answer is None:
        raise invalid(
            f"{body.previous_response_id} has no answer to go on from; ask it again.", "previous_response_id"
        )
    question = trace.question
    past = question.history[1:] if INSTRUCTED in trace.metadata else question.history
    if not past or past[-1].role != "tool":
        past = (*past, Message(role="user", content=question.text, images=question.images))
    calls = tuple(
        call.model_copy(update={"id": call_id(trace.id, number)})
        for number, call in enumerate(trace.tool_calls)
    )
    return (*past, Message(role="assistant", content=trace.answer, tool_calls=calls))


def _messages(items: tuple[Item, ...]) -> tuple[Message, ...]:
    """The items as messages: calls that stand together are one assistant's."""
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


def _options(body: ResponseBody) -> AnswerOptions:
    choice = body.tool_choice
    check_choice(
        [tool.name for tool in body.tools or ()],
        choice.name if isinstance(choice, FlatChoice) else choice,
        body.parallel_tool_calls,
        "tool_choice.name",
    )
    tools = [tool.model_dump(exclude_unset=True, exclude={"type"}) for tool in body.tools or ()]
    return AnswerOptions(
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        tools=tuple({"type": "function", "function": tool} for tool in tools),
        tool_choice={"type": "function", "function": {"name": choice.name}}
        if isinstance(choice, FlatChoice)
        else choice,
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_format(body),
    )


def _format(body: ResponseBody) -> dict[str, Any] | None:
    wanted = None if body.text is None else body.text.format
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return {"type": "json_object"}
    schema = wanted.model_dump(exclude_unset=True, exclude={"type"}, by_alias=True)
    return {"type": "json_schema", "json_schema": schema}
