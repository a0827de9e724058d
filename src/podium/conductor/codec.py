"""Turns messages into tokens and tokens into text, as plain text or through a chat template.

Sampling, training and the model in NumPy use the same classes, so that their prompts do not differ in a single token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from podium.conductor.checkpoint import Checkpoint
from podium.types import Message

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class PromptCodec(Protocol):
    """The tokens of a policy's prompts and completions."""

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of the prompt. The completion begins after them."""
        ...

    def encode_completion(self, text: str) -> list[int]:
        """The tokens of a completion, without the token that ends it."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a completion, without special tokens."""
        ...


class PlainTextCodec:
    """The contents of the messages, one after the other. The token that begins a text comes first, if there is one."""

    def __init__(self, tokenizer: Tokenizer, begin: int | None) -> None:
        # "</s>" within a question is text, not the token that ends a completion.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._begin = () if begin is None else (begin,)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """The codec of a checkpoint.

        Raises:
            CheckpointError: its tokenizer.json cannot be read.
        """
        return cls(checkpoint.tokenizer(), checkpoint.bos_token_id)

    def encode(self, messages: Sequence[Message]) -> list[int]:
        text = "\n".join(message.content for message in messages)
        return [*self._begin, *self._tokenizer.encode(text, add_special_tokens=False).ids]

    def encode_completion(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text


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
        from jinja2 import TemplateError  # noqa: PLC0415 - comes with transformers

        try:
            text = self._render(messages)
        except TemplateError:  # Some templates, such as Gemma's, refuse a system message.
            text = self._render(without_system(messages))
        # The template writes the special tokens itself.
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def encode_completion(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
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
