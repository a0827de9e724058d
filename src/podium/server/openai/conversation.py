"""Functions of the caller, as a request describes them, and the calls that a worker makes of them.

Passed on as they are: they are run by the caller alone.


@@Conversations that pause for their caller's tools: the answers of tools go to the worker that asked for them.

The ids of its calls name the trace in which it made them; there stands what it saw. Where that trace is not to be had
(not kept, deleted, another's), the conversation is a question with a past like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from podium.errors import UsageError
from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.requests import BodyPart, ChatRequest, ListOf
from podium.server.service import Service
from podium.trace import Span, Trace
from podium.types import Message, ToolCall

FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
MAX_TOOLS = 128
"""Tools of one request."""
_ID = re.compile(r"call_([0-9a-f]{32})_(\d{1,3})")


class Function(BodyPart):
    """What a worker may have called."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(BodyPart):
    """A tool of the one kind that there is."""

    type: Literal["function"]
    function: Function


class ChosenName(BodyPart):
    name: FunctionName


class ChosenTool(BodyPart):
    """The one tool that has to be called."""

    type: Literal["function"]
    function: ChosenName


class CalledFunction(BodyPart):
    name: str
    arguments: str


class Called(BodyPart):
    """A call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


ToolChoice = Literal["none", "auto", "required"] | ChosenTool
Tools = Annotated[ListOf[Tool], Field(max_length=MAX_TOOLS)]


def check_choice(tools: Sequence[str], choice: str | None, parallel: bool | None, param: str) -> None:
    """Refuse what is said of tools that there are not.

    Args:
        tools: the names of those that there are.
        choice: the one that has to be called; or a word, which is none.
        param: where that one is named.

    Raises:
        APIError: 400.
    """
    if not tools and (choice is not None or parallel is not None):
        name = "parallel_tool_calls" if choice is None else "tool_choice"
        raise invalid(f"{name} is about tools, and the request has none.", name)
    if choice is not None and choice not in ("none", "auto", "required", *tools):
        raise invalid(f"tool_choice names {choice!r}; the request's tools are {', '.join(tools)}.", param)


def call_id(trace_id: str, number: int) -> str:
    """The id under which a caller is told of a call: it names the trace. At most 40 characters, OpenAI's limit."""
    return f"call_{trace_id}_{number}"


def parse_call_id(id_: str) -> tuple[str, int] | None:
    """The trace and the number of the call that an id names; None: it is not one of ours."""
    match = _ID.fullmatch(id_)
    return None if match is None else (match[1], int(match[2]))


def to_call(call: ToolCall, trace_id: str, number: int) -> dict[str, Any]:
    """A call as a chat completion has it."""
    return {
        "id": call_id(trace_id, number),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def to_messages(
    messages: tuple[Message, ...], param: str = "messages"
) -> tuple[str, tuple[Message, ...], Message | None]:
    """The question in a conversation: its text, its past, and its own message; the latter None where tools spoke last.

    Raises:
        APIError: there is no question in it.
    """
    _check_answered(messages, param)
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise invalid("There is no message of a user; the last one is the question.", param)
    asked, after = messages[last], messages[last + 1 :]
    if not asked.content.strip():
        raise invalid("The question is empty: write what you want answered.", f"{param}.{last}.content")
    if messages[-1].role == "tool":
        return asked.content, messages, None
    for number, message in enumerate(after, last + 1):
        if message.role != "system":
            raise invalid(
                "The last message has to be a user's or a tool's: a worker's answer is not begun by its caller.",
                f"{param}.{number}",
            )
    return asked.content, (*messages[:last], *after), asked


def _check_answered(messages: tuple[Message, ...], param: str) -> None:
    """Every call of a tool is answered, and every answer has its call."""
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


async def resume_after_tools(asked: ChatRequest, service: Service, caller: Caller) -> ChatRequest:
    """`asked`, where tools spoke last, as a question to the worker that called them."""
    history = asked.question.history
    if asked.worker is not None or not history or history[-1].role != "tool":
        return asked
    start = max(i for i, message in enumerate(history) if message.tool_calls)
    trace = await _made_in(history[start].tool_calls[0].id, service, caller)
    spans = trace.spans if trace is not None else ()
    if trace is None or not trace.tool_calls:
        return asked
    worker = spans[-1].answered_by or spans[-1].worker
    past = _past(spans[-1], trace.id, history[start + 1 :])
    if past is None or not _may_go_on(worker, asked, service, caller):
        return asked
    return replace(asked, worker=worker, past=past)


async def _made_in(call_id: str, service: Service, caller: Caller) -> Trace | None:
    """The trace in which a call was made, if it is to be had."""
    found = parse_call_id(call_id)
    if found is None or service.store is None:
        return None
    try:
        return await service.store.get(found[0], owner=None if caller.admin else caller.name)
    except UsageError:
        return None


def _may_go_on(worker: str, asked: ChatRequest, service: Service, caller: Caller) -> bool:
    return (
        worker in caller.allowed(service.pool.names)
        and worker not in asked.deny
        and (asked.allow is None or worker in asked.allow)
    )


def _past(span: Span, trace_id: str, answers: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """What the worker saw, said, and is told now, with its own ids; None: the answers are of other calls."""
    told = []
    for answer in answers:
        found = parse_call_id(answer.tool_call_id or "")
        if found is None or found[0] != trace_id or found[1] >= len(span.tool_calls):
            return None
        told.append(answer.model_copy(update={"tool_call_id": span.tool_calls[found[1]].id}))
    said = Message(role="assistant", content=span.response or "", tool_calls=span.tool_calls)
    return (*span.messages, said, *told)
