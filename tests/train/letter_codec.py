"""A codec for tests that read the tokens of completions."""

from __future__ import annotations

from collections.abc import Sequence

from podium.types import Message


class LetterCodec:
    """A token for each character."""

    def encode(self, messages: Sequence[Message]) -> list[int]:
        return [ord(letter) for letter in messages[0].content]

    def encode_completion(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(map(chr, tokens))
