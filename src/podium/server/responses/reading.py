"""From the body of a request for a response to what is asked."""

from __future__ import annotations

import re
from secrets import token_hex
from typing import Any

from podium.errors import UsageError
from podium.server.api_errors import invalid, missing
from podium.server.conversation import resumed, to_messages
from podium.server.extension import NOTHING, to_budget, to_early_stop, to_steps
from podium.server.keys import Caller
from podium.server.naming import who_answers
from podium.server.responses.request import (
    CallItem,
    Content,
    FlatChoice,
    InputImage,
    InputText,
    Item,
    MessageItem,
    Refusal,
    ResponseBody,
    ResultItem,
)
from podium.server.service import ChatRequest, Service
from podium.server.tools import call_id, check_choice
from podium.trace import Trace
from podium.types import AnswerOptions, Message, Question, ToolCall

INSTRUCTED = "podium.instructions"
"""In a trace's metadata: its first message is the instructions of a response."""
_ID = re.compile(r"resp_([0-9a-f]{32})")


async def read_response(body: ResponseBody, service: Service, caller: Caller) -> ChatRequest:
    """What `body` asks.

    Raises:
        APIError: it cannot be asked so.
    """
    wanted, settings = body.podium or NOTHING, service.settings
    planner, worker = who_answers(body.model, wanted.planner, service.pool, caller)
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
    return await resumed(asked, service, caller)


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
