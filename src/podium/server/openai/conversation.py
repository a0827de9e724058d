"""Conversations with the caller's tools: the tools of a request, the calls that a worker makes, and the way back to it.

Podium passes tool calls on; the caller runs the tools. A call's id names the trace in which the worker made it. When
the caller sends the results, the conversation continues with that worker and the messages that the trace recorded.
If the trace is missing (not kept, deleted, or another key's), the request is handled like any other conversation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.errors import UsageError
from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.leniency import without_names
from podium.server.requests import BodyPart, ChatRequest, ListOf, Unsupported
from podium.server.service import Service
from podium.trace import Span, Trace
from podium.types import AnswerOptions, Message, Question, ToolCall

FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
MAX_TOOLS = 128
"""Tools of one request at most."""
_ID = re.compile(r"call_([0-9a-f]{32})_(\d{1,3})")


class SentPart(BodyPart):
    """A part that workers' endpoints get."""

    @property
    def sent(self) -> dict[str, Any]:
        """Its known fields, as the caller wrote them."""
        return self.model_dump(exclude_unset=True, by_alias=True, include=set(type(self).model_fields))


class Function(SentPart):
    """A function that a worker may call."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(BodyPart):
    """A function as a tool."""

    type: Literal["function"]
    function: Function


class ForeignTool(BodyPart):
    """A tool of another kind, which a provider would run itself."""

    foreign: ClassVar[Unsupported | None] = Unsupported("functions are the only kind of tools.")

    type: str


def tool_kind(tool: Any) -> str:
    """Which of the two a part of the body is."""
    return "function" if not isinstance(tool, dict) or tool.get("type") == "function" else "foreign"


class ChosenName(BodyPart):
    name: FunctionName


class ChosenTool(BodyPart):
    """The one tool that must be called."""

    type: Literal["function"]
    function: ChosenName


class FunctionCall(BodyPart):
    name: str
    arguments: str


class ToolCallPart(BodyPart):
    """A tool call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class FlatChoice(BodyPart):
    """The same in the flat form of the Responses API."""

    type: Literal["function"]
    name: FunctionName


class ForeignChoice(ForeignTool):
    """A tool of another kind as the one to call."""


Choice = Literal["none", "auto", "required"]
ToolChoice = (
    Choice
    | Annotated[
        Annotated[ChosenTool, Tag("function")] | Annotated[ForeignChoice, Tag("foreign")],
        Discriminator(tool_kind),
    ]
)
_AnyTool = Annotated[
    Annotated[Tool, Tag("function")] | Annotated[ForeignTool, Tag("foreign")], Discriminator(tool_kind)
]
Tools = Annotated[ListOf[_AnyTool], Field(max_length=MAX_TOOLS)]


def check_tool_choice(
    tools: Sequence[str],
    choice: str | ChosenTool | FlatChoice | ForeignChoice | None,
    parallel: bool | None,
    *,
    strict: bool,
) -> tuple[str | dict[str, Any] | None, bool | None]:
    """What a request says about the choice of its tools, in the form of a chat completion.

    Args:
        tools: the names of the request's functions.
        strict: whether to refuse settings of tools in a request that has none, also those that change nothing.

    Raises:
        APIError: 400, it refers to a tool that the request does not have.
    """
    given = "parallel_tool_calls" if choice is None and parallel is not None else choice and "tool_choice"
    if given and not tools and (strict or choice not in (None, "none", "auto")):
        raise invalid(f"{given} is about tools, and the request has none.", given)
    if not tools or isinstance(choice, ForeignChoice):
        return None, parallel if tools else None
    if choice is None or isinstance(choice, str):
        return choice, parallel
    flat = isinstance(choice, FlatChoice)
    wanted = choice.name if isinstance(choice, FlatChoice) else choice.function.name
    if wanted not in tools:
        where = "tool_choice.name" if flat else "tool_choice.function.name"
        raise invalid(f"tool_choice names {wanted!r}; the request's tools are {', '.join(tools)}.", where)
    return {"type": "function", "function": {"name": wanted}}, parallel


def call_id(trace_id: str, number: int) -> str:
    """The id of a tool call as the caller sees it: it names the trace. At most 40 characters, OpenAI's limit."""
    return f"call_{trace_id}_{number}"


def parse_call_id(id_: str) -> tuple[str, int] | None:
    """The trace id and call number in a call's id; None: the id is not one of ours."""
    match = _ID.fullmatch(id_)
    return None if match is None else (match[1], int(match[2]))


def to_call(call: ToolCall, trace_id: str, number: int) -> dict[str, Any]:
    """A tool call in the form of a chat completion."""
    return {
        "id": call_id(trace_id, number),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def to_question(
    messages: tuple[Message, ...], options: AnswerOptions, *, direct: bool, param: str = "messages"
) -> Question:
    """The question that a conversation asks: its last user message, after all others.

    Where the last message is a tool's, the history holds the whole conversation, and the tool's message stays its end.

    Args:
        direct: whether one worker gets the conversation as it is, so that only the trace's question is wanted.

    Raises:
        APIError: the conversation has no question.
    """
    _check_answered(messages, param)
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        if not direct:
            raise invalid("There is no user message; the last user message is the question.", param)
        last = len(messages) - 1
    own, after = messages[last], messages[last + 1 :]
    if not own.content.strip():
        raise invalid("The question is empty: write what you want answered.", f"{param}.{last}.content")
    messages = without_names(messages)
    final = max((i for i, message in enumerate(messages) if message.role != "system"), default=last)
    if messages[final].role == "tool":
        return Question(
            text=own.content,
            history=(*messages[:last], *messages[final + 1 :], *messages[last : final + 1]),
            options=options,
        )
    if not direct and final > last:
        raise invalid(
            "The last message must be a user's or a tool's; Podium does not continue an assistant's message.",
            f"{param}.{final}",
        )
    return Question(text=own.content, history=(*messages[:last], *after), images=own.images, options=options)


def _check_answered(messages: tuple[Message, ...], param: str) -> None:
    """Check that every tool call has a result, and every result its call."""
    open_: dict[str, int] = {}
    for number, message in enumerate(messages):
        if message.role == "tool":
            answered = message.tool_call_id or ""
            if open_.pop(answered, None) is None:
                raise invalid(
                    f"The tool's message answers {answered[:100]!r}, and no assistant's message before calls it.",
                    f"{param}.{number}.tool_call_id",
                )
            continue
        if open_:
            break
        open_ = {call.id: number for call in message.tool_calls}
    if open_:
        id_, number = next(iter(open_.items()))
        raise invalid(
            f"The tool call {id_[:100]!r} is not answered by a tool's message.",
            f"{param}.{number}.tool_calls",
        )


async def resume_after_tools(request: ChatRequest, service: Service, caller: Caller) -> ChatRequest:
    """Direct a request whose last message is a tool's result to the worker that called the tool."""
    history = request.question.history
    if request.worker is not None or not history or history[-1].role != "tool":
        return request
    start = max(i for i, message in enumerate(history) if message.tool_calls)
    trace = await _find_trace(history[start].tool_calls[0].id, service, caller)
    spans = trace.spans if trace is not None else ()
    if trace is None or not trace.tool_calls:
        return request
    worker = spans[-1].answered_by or spans[-1].worker
    past = _worker_messages(spans[-1], trace.id, history[start + 1 :])
    if past is None or not _may_continue(worker, request, service, caller):
        return request
    return replace(request, worker=worker, messages=past)


async def _find_trace(call_id: str, service: Service, caller: Caller) -> Trace | None:
    """The trace in which the call was made, if it was kept and the caller may see it."""
    found = parse_call_id(call_id)
    if found is None or service.store is None:
        return None
    try:
        return await service.store.get(found[0], owner=None if caller.admin else caller.name)
    except UsageError:
        return None


def _may_continue(worker: str, request: ChatRequest, service: Service, caller: Caller) -> bool:
    return (
        worker in caller.allowed(service.pool.names)
        and worker not in request.deny
        and (request.allow is None or worker in request.allow)
    )


def _worker_messages(span: Span, trace_id: str, answers: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """The worker's messages, its response and the tools' results, with its own call ids; None: for other calls."""
    results = []
    for answer in answers:
        found = parse_call_id(answer.tool_call_id or "")
        if found is None or found[0] != trace_id or found[1] >= len(span.tool_calls):
            return None
        results.append(answer.model_copy(update={"tool_call_id": span.tool_calls[found[1]].id}))
    response = Message(role="assistant", content=span.response or "", tool_calls=span.tool_calls)
    return (*span.messages, response, *results)
