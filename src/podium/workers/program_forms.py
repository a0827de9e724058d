"""The forms in which a user's program or function gets a request, and reports usage and cost besides its text.

A reply is validated strictly: an unknown key, a negative number or an empty text is a failed call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from podium.trace import Reply
from podium.types import FrozenModel, Limits, Message, Usage, estimate_tokens
from podium.workers.base import Request

_SHOWN_CHARS = 60
"""Characters of a key that a message repeats."""


class UsageForm(FrozenModel):
    """Tokens, as counted by the program."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    """The part of the input tokens that came from the provider's cache."""
    cache_write_tokens: int = Field(default=0, ge=0)
    """The part of the input tokens that the provider wrote into its cache."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """The part of the output tokens that was reasoning."""

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        cached = self.cached_tokens + self.cache_write_tokens
        if cached > self.input_tokens or self.reasoning_tokens > self.output_tokens:
            raise ValueError(
                "cached_tokens and cache_write_tokens are parts of input_tokens, and reasoning_tokens of output_tokens."
            )
        return self


class ReplyForm(FrozenModel):
    """`{"text": "...", "usage": {"input_tokens": 9, "output_tokens": 2}, "cost_usd": 0.01}`."""

    text: str
    usage: UsageForm | None = None
    """The counted tokens. If it is None, Podium estimates the usage."""
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The dollars of the call. If it is None, Podium computes them from usage and price."""


def request_form(request: Request, limits: Limits) -> dict[str, Any]:
    """The messages of a request, and what its answer may depend on besides, as JSON."""
    return {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "seed": request.seed,
        "repeat": request.earlier_calls,
        "sample": request.sample,
        "max_tokens": limits.answer_tokens(request.options.max_tokens),
    }


def read_form(form: bytes | Mapping[Any, Any], messages: Sequence[Message]) -> Reply:
    """The reply that JSON or a mapping describes.

    Raises:
        ValueError: the form is invalid. The message is a few words, and repeats no values.
    """
    try:
        if isinstance(form, bytes):
            read = ReplyForm.model_validate_json(form, strict=True)
        else:
            read = ReplyForm.model_validate(dict(form), strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])[:_SHOWN_CHARS]
        raise ValueError(f"{location or 'the whole'}: {first['msg']}") from None
    usage = None if read.usage is None else Usage(**read.usage.model_dump())
    return text_reply(read.text, messages, usage, read.cost_usd)


def text_reply(
    text: str, messages: Sequence[Message], usage: Usage | None = None, cost_usd: float | None = None
) -> Reply:
    """A reply of `text`. If `usage` is None, the tokens are estimated and marked as estimated.

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
