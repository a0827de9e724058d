"""Conversations with the caller's tools: the tools of a request, the calls that a worker makes, and the way back to it.

Podium passes tool calls on; the caller runs the tools. A call's id names the trace in which the worker made it. When
the caller sends the results, the conversation continues with that worker and the messages that the trace recorded.
If the trace is missing (not kept, deleted, or another key's), the request is handled like any other conversation.
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
"""Tools of one request at most."""
_ID = re.compile(r"call_([0-9a-f]{32})_(\d{1,3})")


class Function(BodyPart):
    """A function that a worker may call."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(BodyPart):
    """A tool. Functions are the only kind."""

    type: Literal["function"]
    function: Function


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


ToolChoice = Literal["none", "auto", "required"] | ChosenTool
Tools = Annotated[ListOf[Tool], Field(max_length=MAX_TOOLS)]


def check_tool_choice(tools: Sequence[str], choice: str | None, parallel: bool | None, param: str) -> None:
    """Check that a request's choice of tools refers to tools that it has.

    Args:
        tools: the names of the request's tools.
        choice: the tool that must be called, or "none", "auto", "required".
        param: the field that names the tool.

    Raises:
        APIError: 400.
    """
    if not tools and (choice is not None or parallel is not None):
        name = "parallel_tool_calls" if choice is None else "tool_choice"
        raise invalid(f"{name} is about tools, and the request has none.", name)
    if choice is not None and choice not in ("none", "auto", "required", *tools):
        raise invalid(f"tool_choice names {choice!r}; the request's tools are {', '.join(tools)}.", param)


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


def find_question(
    messages: tuple[Message, ...], param: str = "messages"
) -> tuple[str, tuple[Message, ...], Message | None]:
    """Find the question in a conversation: its text, the messages before it, and its own message.

    The own message is None where the last message is a tool's.

    Raises:
        APIError: the conversation has no question.
    """
    _check_answered(messages, param)
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise invalid("There is no user message; the last user message is the question.", param)
    own, after = messages[last], messages[last + 1 :]
    if not own.content.strip():
        raise invalid("The question is empty: write what you want answered.", f"{param}.{last}.content")
    if messages[-1].role == "tool":
        return own.content, messages, None
    for number, message in enumerate(after, last + 1):
        if message.role != "system":
            raise invalid(
                "The last message must be a user's or a tool's; Podium does not continue an assistant's message.",
                f"{param}.{number}",
            )
    return own.content, (*messages[:last], *after), own


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
    return replace(request, worker=worker, past=past)


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
