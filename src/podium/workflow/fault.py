"""What is wrong with a text and where: the one place where a position becomes a line with a caret."""

from __future__ import annotations

import re
from dataclasses import dataclass

from podium.workflow.model import PlanError

LINE_WIDTH = 72
"""Characters of a line that are shown at most; a longer one is shortened around the column."""
FOUND_WIDTH = 24
"""Characters of what was found that a sentence repeats at most."""

# Whatever would move the caret, break the line or be no text at all (half of a surrogate pair).
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fault:
    """A `PlanError` in the making, while the text is still at hand."""

    kind: str
    message: str
    at: int | None = None
    """Position in the text, from 0; None when no single place is at fault."""

    def error(self, text: str) -> PlanError:
        """The fault as a value that stands without the text."""
        if self.at is None:
            return PlanError(self.kind, self.message)
        line, column = line_around(text, self.at)
        return PlanError(self.kind, self.message, line, column)


def line_around(text: str, at: int) -> tuple[str, int]:
    """The line of `text` that holds position `at`, as shown to people, and the column of `at` in it."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    left = max(start, min(at - LINE_WIDTH // 2, end - LINE_WIDTH))
    right = min(end, left + LINE_WIDTH)
    before, after = "…" if left > start else "", "…" if right < end else ""
    return before + showable(text[left:right]).rstrip() + after, at - left + len(before)


def found(text: str) -> str:
    """What was found, as a sentence repeats it: quoted, on one line, shortened."""
    shown = showable(text if len(text) <= FOUND_WIDTH else text[: FOUND_WIDTH - 1] + "…")
    return f"'{shown}'"


def showable(text: str) -> str:
    """`text` with a space for each tab and a replacement character for what a line cannot show."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " ").replace("\r", " "))
