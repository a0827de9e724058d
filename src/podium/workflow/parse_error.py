"""A fault in a plan's text: its position becomes the line that an error shows with a caret."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from podium.workflow.model import PlanError

LINE_WIDTH = 72
"""The most characters of a line that an error shows. A longer line is shortened around the column."""
FOUND_WIDTH = 24
"""The most characters of the text at fault that a message repeats."""

# Characters that would move the caret or break the line, and halves of surrogate pairs.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(eq=False)
class ParseError(Exception):
    """A fault at a position in the text, raised within the parser. `error` makes a `PlanError`, which contains the line
    at fault."""

    kind: str
    message: str
    at: int | None = None
    """Position in the text, from 0. None if no single position is at fault."""

    def error(self, text: str) -> PlanError:
        """The `PlanError`, with the line and the column."""
        if self.at is None:
            return PlanError(self.kind, self.message)
        line, column = line_around(text, self.at)
        return PlanError(self.kind, self.message, line, column)


def line_around(text: str, at: int) -> tuple[str, int]:
    """The line of `text` around position `at`, as messages show it, and the terminal's column of `at` in it."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    left = max(start, min(at - LINE_WIDTH // 2, end - LINE_WIDTH))
    right = min(end, left + LINE_WIDTH)
    before, after = "…" if left > start else "", "…" if right < end else ""
    column = sum(map(_cells, before + showable(text[left:at])))
    return before + showable(text[left:right]).rstrip() + after, column


def _cells(character: str) -> int:
    """How many columns a character takes on a terminal: 0 for a combining mark, 2 for a wide character, else 1."""
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def quote_fragment(text: str) -> str:
    """Text as a message repeats it: in quotes, on one line, shortened."""
    shown = showable(text if len(text) <= FOUND_WIDTH else text[: FOUND_WIDTH - 1] + "…")
    return f"'{shown}'"


def showable(text: str) -> str:
    """`text` with a space for each tab and a replacement character for what a line cannot show."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " ").replace("\r", " "))
