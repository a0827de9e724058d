"""Fences that a worker copied from its messages into its answer, where nobody wants to read them.

Small models go on with what they have read: SmolLM2 of 135 million parameters did it in 13 of 100 answers, and
Qwen2.5-Coder of 0.5 and 1.5 billion in one of 200. The mark is random, so a text can only have it from the messages.
"""

from __future__ import annotations

import re

_LABEL = r"<<<[^<>\n]{0,60}"
_MOST_CLOSING = 4
"""Models write `>>>` with one too many, or too few."""
_BEGUN = re.compile(rf"(?:<{{1,2}}|{_LABEL}[^<>\n]{{0,20}}>{{0,{_MOST_CLOSING - 1}}})\Z")


def remove_fences(text: str, fence_mark: str) -> str:
    """The text without the fences that carry the mark. What stood between them stays."""
    if not fence_mark or fence_mark not in text:
        return text
    return re.sub(rf"{_LABEL}{fence_mark}>{{0,{_MOST_CLOSING}}}", "", text)


class FenceFilter:
    """Does what `remove_fences` does with a text that comes in pieces.

    What may be the beginning of a fence waits for the next piece. If none comes, it is not passed on: whoever streams
    an answer sends at its end what is still missing.
    """

    def __init__(self, fence_mark: str) -> None:
        self._fence_mark = fence_mark
        self._pending = ""

    def add(self, text: str) -> str:
        """The part of the text that this piece makes certain."""
        text = self._pending + text
        begun = _BEGUN.search(text, max(0, len(text) - 100))
        end = len(text) if begun is None else begun.start()
        self._pending = text[end:]
        return remove_fences(text[:end], self._fence_mark)
