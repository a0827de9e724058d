"""Turns messages into tokens and tokens into text, for a policy with a chat template. `codec` is for policies that read
plain text.

Training and inference both use this class, so that their prompts do not differ in a single token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError

from podium.types import Message


class ChatCodec:
    """Messages through a tokenizer's chat template.

    Args:
        tokenizer: a tokenizer of transformers.
        template_kwargs: further arguments of the template, such as enable_thinking.
    """

    def __init__(self, tokenizer: Any, template_kwargs: Mapping[str, Any] | None = None) -> None:
        self._tokenizer = tokenizer
        self._template_kwargs = dict(template_kwargs or {})

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of the prompt. The completion begins after them."""
        try:
            text = self._render(messages)
        except TemplateError:  # Some templates, such as Gemma's, refuse a system message.
            text = self._render(without_system(messages))
        # The template writes the special tokens itself.
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def encode_completion(self, text: str) -> list[int]:
        """The tokens of a completion, without the token that ends it."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a completion, without special tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text

    def _render(self, messages: Sequence[Message]) -> str:
        text: str = self._tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in messages],
            tokenize=False,
            add_generation_prompt=True,
            **self._template_kwargs,
        )
        return text


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with the text of the system message moved to the beginning of the first user message."""
    system, user, *rest = messages
    return [Message(role="user", content=f"{system.content}\n\n{user.content}"), *rest]
