"""Turns messages into tokens and tokens into text, for a policy that reads plain text and no chat template.

Sampling, training and the model in NumPy all use this class, so that their prompts do not differ in a single token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from podium.conductor.checkpoint import Checkpoint
from podium.types import Message

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Codec:
    """Encodes the contents of the messages, one after the other. The token that begins a text comes first, if there is
    one."""

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
        """The tokens of a completion, without the token that ends it."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a completion, without special tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text
