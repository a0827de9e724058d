"""Fences texts that a prompt quotes: whatever such a text says, it cannot end its own fence.

A policy's prompt fences with tildes, which need no mark: it was trained on them, and equal prompts stay equal. Workers
and judges read blocks with a mark that the author of a text cannot know, and a label that says whose text it is. If a
worker copies such a fence into its answer, `remove_fences` takes it out, and the text that was invented after it.
"""

from __future__ import annotations

import re

_LABEL = r"<<<([^<>\n]{0,60}?)\s{0,16}"
_MOST_CLOSING = 4
"""The most brackets that close a copied fence. Models write one `>` too many or too few."""
_BEGUN = re.compile(rf"(?:<{{1,2}}|<<<[^<>\n]{{0,60}}\s{{0,16}}[0-9a-z]{{0,16}}>{{0,{_MOST_CLOSING - 1}}})\Z")
"""Matches an unfinished fence at the end of a text: a label, space, part of a mark, and closing brackets."""
_ENDS_ANSWER = re.compile(r"end|.*\b(?:subtask|response)", re.IGNORECASE)
"""Labels of fences that end the answer. What a model writes after them is invented."""


def tilde_fence(text: str) -> str:
    """`text` between two lines of tildes, which are longer than any run of tildes in it."""
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    line = "~" * max(3, longest + 1)
    return f"{line}\n{text}\n{line}"


def marked_block(label: str, text: str, mark: str) -> str:
    """A line with label and mark, then `marked_text`."""
    return f"<<<{label} {mark}>>>\n{marked_text(text, mark)}"


def marked_text(text: str, mark: str) -> str:
    """`text` without the mark, then a line that ends it. Workers see the mark, so one of them could write it."""
    return f"{text.replace(mark, '-')}\n<<<end {mark}>>>"


def remove_fences(text: str, fence_mark: str) -> str:
    """The text up to the end of its answer, without the fences that carry the mark. The answer ends at the first fence
    after some text that ends a block or begins another. A text that consists only of fences stays as it is.

    Small models continue what they have read: SmolLM2 with 135 million parameters copied fences into 13 of 100 answers,
    Qwen2.5-Coder with 0.5 and 1.5 billion into one of 200. A text that contains the random mark copied it.
    """
    if not fence_mark or fence_mark not in text:
        return text
    return FenceFilter(fence_mark).take(text) or text


class FenceFilter:
    """Does what `remove_fences` does, for a text that comes in pieces. An unfinished fence waits for the next piece,
    and spaces wait for the first word. What still waits at the end is not returned: the end of the stream sends what is
    missing."""

    def __init__(self, fence_mark: str) -> None:
        self._fence = re.compile(rf"{_LABEL}{fence_mark}>{{0,{_MOST_CLOSING}}}")
        self._pending = ""
        self._spaces: str | None = ""
        """The spaces read so far. None once a word was read."""
        self._ended = False

    def add(self, text: str) -> str:
        """The part of the answer that this piece makes certain."""
        text = self._pending + text
        begun = _BEGUN.search(text, max(0, len(text) - 100))
        end = len(text) if begun is None else begun.start()
        self._pending = text[end:]
        return self.take(text[:end])

    def take(self, text: str) -> str:
        """The part of the answer in this piece, which must not end within a fence."""
        pieces, start = list[str](), 0
        while not self._ended:
            fence = self._fence.search(text, start)
            pieces.append(text[start:] if fence is None else text[start : fence.start()])
            if self._spaces is not None:
                self._spaces += pieces.pop()
                if self._spaces.strip():
                    pieces.append(self._spaces)
                    self._spaces = None
            if fence is None:
                break
            self._ended = self._spaces is None and _ENDS_ANSWER.match(fence[1]) is not None
            start = fence.end()
        return "".join(pieces)
