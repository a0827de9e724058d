"""Conversations with the caller's tools: from messages to a question, and from tool results to the worker that made
the calls. All APIs share this.

Podium returns tool calls to the caller, which runs the tools. When the caller sends the results, the worker that made
the calls continues, with the messages that the trace recorded. If the trace is missing (not kept, deleted, or of
another key), the worker gets the caller's own messages. Later turns that still send tools go to this worker too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podium.server.answer_state import CallId, ProviderStates, answer_message, worker_letters
from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.requests import ChatRequest, full_conversation
from podium.server.service import Service
from podium.server.unsupported_fields import without_names
from podium.server.worker_selection import eligible_workers
from podium.trace import Span, Trace
from podium.types import AnswerOptions, Message, Question


def to_question(
    messages: tuple[Message, ...], options: AnswerOptions, *, direct: bool, param: str = "messages"
) -> Question:
    """Turn a conversation into a question: the last user message is its text, the other messages are its history.

    If the last message is a tool result, the history has the whole conversation and still ends with this result.

    Args:
        direct: whether one worker gets the conversation unchanged. Then the question is only for the trace.

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
    open_: dict[str, int] = {}
    for number, message in enumerate(messages):
        if message.role == "tool":
            answered = message.tool_call_id or ""
            if open_.pop(answered, None) is None:
                raise invalid(
                    f"The tool's message answers {answered[:100]!r}, but no earlier assistant's message has this call.",
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


async def stay_with_worker(request: ChatRequest, service: Service, caller: Caller) -> ChatRequest:
    """If a worker called the caller's tools in this conversation, send the request to that worker, without a plan.

    If that worker is unknown or not allowed, tool results go to a worker that the planner requires, else to the
    planner's fallback, else to the first eligible worker.

    Raises:
        APIError: 400, no eligible worker supports tools.
    """
    if not any(message.tool_calls for message in request.question.history):
        return request
    request = await _with_states(request, service.provider_states, caller)
    if request.worker is not None:
        return request
    conversation = full_conversation(request.question)
    answered = conversation[-1].role == "tool"
    if not (answered or request.question.options.tools):
        return request
    start = max(i for i, message in enumerate(conversation) if message.tool_calls)
    id_ = CallId.parse(conversation[start].tool_calls[0].id)
    trace = past = None
    if id_ is not None:
        trace = await service.store.to_thread(service.store.find, id_.trace_id, caller.visible_owner)
    if trace is not None and trace.tool_calls:
        last = trace.spans[-1]
        known = [last.answered_by or last.worker]
        past = _worker_messages(last, trace, conversation[start + 1 :]) if answered else None
    else:
        known = [
            name for name in service.pool.names if id_ is not None and worker_letters(name) == id_.letters
        ]
    allowed = caller.allowed(service.pool.names)
    worker = next((name for name in known if name in allowed and request.allows(name)), None)
    if worker is None and answered:
        worker = await _default_worker(request, service, caller)
    return request if worker is None else replace(request, worker=worker, messages=past or conversation)


async def _default_worker(request: ChatRequest, service: Service, caller: Caller) -> str:
    left = eligible_workers(service.pool, caller, request, service.planners).names
    configured = await service.planners.get(request.planner, "model")
    own = service.planners.required_workers(request.planner)
    return next((name for name in (*own, configured.fallback) if name in left), left[0])


def _worker_messages(span: Span, trace: Trace, answers: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """The worker's messages, its response and the tool results. None if a result is for another call."""
    for answer in answers:
        call_id = CallId.parse(answer.tool_call_id or "")
        if call_id is None or call_id.trace_id != trace.id or call_id.number >= len(trace.tool_calls):
            return None
    return (*span.messages, answer_message(trace), *answers)


async def _with_states(request: ChatRequest, states: ProviderStates, caller: Caller) -> ChatRequest:
    """The request with the provider state of tool calls, if the client dropped that state."""
    history = tuple([await states.restore(message, caller) for message in request.question.history])
    messages = request.messages
    if messages is not None:
        messages = tuple([await states.restore(message, caller) for message in messages])
    question = request.question.model_copy(update={"history": history})
    return replace(request, question=question, messages=messages)


def check_tool_choice(tools: Sequence[str], name: str | None = None, field: str = "tool_choice") -> None:
    """Check that a request that must call a tool, or the tool of this name, has it among its functions.

    Raises:
        APIError: 400, which names the field.
    """
    if not tools:
        raise invalid(f"{field} is about tools, and the request has none.", field)
    if name is not None and name not in tools:
        raise invalid(f"tool_choice names {name!r}; the request's tools are {', '.join(tools)}.", field)
