"""From the body of a chat completion to what is asked."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

from podium.server.api_errors import invalid
from podium.server.chat.request import (
    AssistantMessage,
    AssistantPart,
    ChatBody,
    ChatMessage,
    ImagePart,
    RefusalPart,
    TextPart,
    ToolMessage,
    UserMessage,
    UserPart,
)
from podium.server.conversation import resumed, to_messages
from podium.server.extension import NOTHING, to_budget, to_early_stop, to_steps
from podium.server.keys import Caller
from podium.server.naming import who_answers
from podium.server.service import ChatRequest, Service
from podium.server.tools import ChosenTool, check_choice
from podium.types import AnswerOptions, Message, Question, ToolCall


async def read_chat(body: ChatBody, service: Service, caller: Caller) -> ChatRequest:
    """What `body` asks.

    Raises:
        APIError: it cannot be asked so.
    """
    wanted, settings = body.podium or NOTHING, service.settings
    planner, worker = who_answers(body.model, wanted.planner, service.pool, caller)
    text, history, message = to_messages(tuple(_message(m) for m in body.messages))
    question = Question(
        text=text,
        history=history,
        images=() if message is None else message.images,
        options=_options(body),
    )
    asked = ChatRequest(
        question=question,
        model=body.model,
        budget=to_budget(wanted, settings),
        allow=wanted.allow,
        deny=wanted.deny or (),
        planner=planner,
        worker=worker,
        max_steps=to_steps(wanted, settings),
        early_stop=to_early_stop(wanted, settings),
        dry_run=bool(wanted.dry_run),
        seed=token_hex(8) if body.seed is None else str(body.seed),
        metadata=body.metadata or {},
        user=body.user if body.user is not None else body.safety_identifier,
        keep=body.store is not False,
    )
    return await resumed(asked, service, caller)


def _message(message: ChatMessage) -> Message:
    match message:
        case UserMessage(content=content):
            return Message(role="user", content=_text(content), images=_images(content))
        case AssistantMessage():
            calls = tuple(
                ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in message.tool_calls or ()
            )
            text = _text(message.content or "") or message.refusal or ""
            return Message(role="assistant", content=text, tool_calls=calls)
        case ToolMessage():
            return Message(role="tool", content=_text(message.content), tool_call_id=message.tool_call_id)
        case _:
            return Message(role="system", content=_text(message.content))


def _text(content: str | tuple[TextPart, ...] | tuple[UserPart, ...] | tuple[AssistantPart, ...]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        part.text if isinstance(part, TextPart) else part.refusal
        for part in content
        if isinstance(part, TextPart | RefusalPart)
    )


def _images(content: str | tuple[UserPart, ...]) -> tuple[str, ...]:
    if isinstance(content, str):
        return ()
    return tuple(part.image_url.url for part in content if isinstance(part, ImagePart))


def _options(body: ChatBody) -> AnswerOptions:
    stop = (body.stop,) if isinstance(body.stop, str) else body.stop or ()
    if "" in stop:
        raise invalid("stop: a text before which the answer ends may not be empty.", "stop")
    choice = body.tool_choice
    check_choice(
        [tool.function.name for tool in body.tools or ()],
        choice.function.name if isinstance(choice, ChosenTool) else choice,
        body.parallel_tool_calls,
        "tool_choice.function.name",
    )
    given = [n for n in (body.max_tokens, body.max_completion_tokens) if n is not None]
    return AnswerOptions(
        max_tokens=min(given, default=None),
        temperature=body.temperature,
        top_p=body.top_p,
        stop=stop,
        tools=tuple(tool.model_dump(exclude_unset=True) for tool in body.tools or ()),
        tool_choice=choice.model_dump() if isinstance(choice, ChosenTool) else choice,
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_format(body),
    )


def _format(body: ChatBody) -> dict[str, Any] | None:
    wanted = body.response_format
    if wanted is None or wanted.type == "text":
        return None
    return wanted.model_dump(exclude_unset=True, by_alias=True)
