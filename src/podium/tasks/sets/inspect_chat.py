"""Inspect's chat messages as a question with a past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.errors import UsageError
from podium.types import Message, Question

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage


def to_question(messages: Sequence[ChatMessage]) -> Question:
    """The question that the last message of a chat asks. A model's reasoning is no part of the past.

    Raises:
        UsageError: the last message is not a user's, or the chat holds more than text.
    """
    if not messages or messages[-1].role != "user":
        last = f"a message of the {messages[-1].role}" if messages else "nothing"
        raise UsageError(
            f"The chat ends with {last}; Podium answers a chat whose last message is the user's."
        )
    *past, question = [_message(message) for message in messages]
    return Question(text=question.content, history=tuple(past))


def _message(message: ChatMessage) -> Message:
    if message.role == "tool":
        raise UsageError("The chat holds a tool's message, and Podium's workers use none; leave tools out.")
    for content in message.content_list:
        if content.type not in ("text", "reasoning"):
            raise UsageError(f"The chat holds {content.type} content, and Podium's workers read text alone.")
    return Message(role=message.role, content=message.text)
