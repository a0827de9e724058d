"""The form in which a program or a function of the user's says more than its text: usage and cost.

Read strictly: an unknown key, a number below 0 or a text of nothing is a failed call, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from podium.types import Message, Usage, Value, estimate_tokens
from podium.workers.base import Reply

_SHOWN = 60
"""Characters of a key that a message repeats."""


class UsageForm(Value):
    """Tokens, as the program counted them."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    """Of the input tokens."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Of the output tokens."""

    @model_validator(mode="after")
    def _parts(self) -> Self:
        if self.cached_tokens > self.input_tokens or self.reasoning_tokens > self.output_tokens:
            raise ValueError("cached_tokens are part of input_tokens, and reasoning_tokens of output_tokens.")
        return self


class ReplyForm(Value):
    """`{"text": "...", "usage": {"input_tokens": 9, "output_tokens": 2}, "cost_usd": 0.01}`."""

    text: str
    usage: UsageForm | None = None
    """None: counted by us."""
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """None: told by usage and price."""


def read_form(said: bytes | Mapping[Any, Any], messages: Sequence[Message]) -> Reply:
    """The reply that JSON or a mapping describes.

    Raises:
        ValueError: it is not of the form; the message is a few words, without what was said.
    """
    try:
        if isinstance(said, bytes):
            form = ReplyForm.model_validate_json(said, strict=True)
        else:
            form = ReplyForm.model_validate(dict(said), strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:_SHOWN]
        raise ValueError(f"{place or 'the whole'}: {first['msg']}") from None
    usage = None if form.usage is None else Usage(**form.usage.model_dump())
    return text_reply(form.text, messages, usage, form.cost_usd)


def text_reply(
    text: str, messages: Sequence[Message], usage: Usage | None = None, cost_usd: float | None = None
) -> Reply:
    """A reply of `text`; without `usage`, tokens are counted by us and marked so.

    Raises:
        ValueError: there is no text, or it cannot be written as UTF-8.
    """
    if not text.strip():
        raise ValueError("there is no text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half a character and cannot be written as UTF-8") from None
    if usage is None:
        sent = sum(estimate_tokens(message.content) for message in messages)
        usage = Usage(input_tokens=sent, output_tokens=estimate_tokens(text), estimated=True)
    return Reply(text, usage, cost_usd=cost_usd)
