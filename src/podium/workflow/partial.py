"""Finds the complete steps of a structured plan that is still being written."""

from __future__ import annotations


class StepReader:
    """Reads the text of a structured plan piece by piece. A step counts as complete once the next step opens, so the
    last step of a plan is never complete: only the end of the plan shows which step is the last."""

    def __init__(self) -> None:
        self._text = ""
        self._open: list[str] = []
        """The brackets that are open."""
        self._in_string = self._escaped = False
        self._steps = 0

    def feed(self, piece: str) -> str | None:
        """Take in the next piece of the text. Returns the text with only the complete steps, closed so that `parse`
        reads it; None if the piece completes no step."""
        start, complete = len(self._text), None
        self._text += piece
        for position, character in enumerate(piece, start):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                if character == "{" and self._open == ["{", "["]:
                    self._steps += 1
                    complete = position if self._steps > 1 else None
                self._open.append(character)
            elif character in "}]" and self._open:
                self._open.pop()
        return None if complete is None else self._text[:complete].rstrip().removesuffix(",") + "]}"
