"""What a model of the fault server says when nothing is wrong, and the counts that a provider would bill.

A value, and the forms in which a user may give it. How it is written on the wire is completion.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, TypeAlias

from podium.types import estimate_tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of a model."""

    text: str
    input_tokens: int | None = None
    """None: estimated from the messages."""
    output_tokens: int | None = None
    """With those of thought. None: estimated from the text and the thought."""
    finish_reason: str = "stop"
    model: str | None = None
    """The name that the reply gives; None: the one that was asked for."""
    reasoning: str = ""
    """Thought that is shown, as vLLM and others put it beside the text."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0


Said: TypeAlias = str | Answer
Answering: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any]], Said | Awaitable[Said]]
"""From the messages and the whole body of a request, both as sent, to what the model says."""


def echo(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """The default: the beginning of what was said last."""
    return f"You said: {content_text(messages[-1].get('content'))[:80]}" if messages else "You said nothing."


async def ask(answering: Said | Answering, body: dict[str, Any]) -> Answer:
    """The answer to a request, with all its counts."""
    messages = body["messages"]
    said: Any = answering(messages, body) if callable(answering) else answering
    if isawaitable(said):
        said = await said
    given = said if isinstance(said, Answer) else Answer(said)
    thought = given.reasoning_tokens or estimate_tokens(given.reasoning)
    return Answer(
        text=given.text,
        input_tokens=count_input(messages) if given.input_tokens is None else given.input_tokens,
        output_tokens=thought + estimate_tokens(given.text)
        if given.output_tokens is None
        else given.output_tokens,
        finish_reason=given.finish_reason,
        model=given.model or body["model"],
        reasoning=given.reasoning,
        reasoning_tokens=thought,
        cached_tokens=given.cached_tokens,
    )


def count_input(messages: list[dict[str, Any]]) -> int:
    """Tokens of `messages`, estimated."""
    return sum(estimate_tokens(content_text(message.get("content"))) for message in messages)


def content_text(content: object) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""
