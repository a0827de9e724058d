"""A structured plan that is still being written: which of its steps are complete."""

from __future__ import annotations


class StepReader:
    """Reads the text of a structured plan piece by piece.

    A step counts as complete once the next one opens. So the last step of a plan is never among them: what is the last
    step, whose response is the answer, is known only when the plan ends.
    """

    def __init__(self) -> None:
        self._text = ""
        self._open: list[str] = []
        """The brackets that are open."""
        self._in_string = self._escaped = False
        self._steps = 0

    def feed(self, piece: str) -> str | None:
        """Take in the next piece of the text.

        Returns:
            The text with the complete steps alone, closed so that `parse` reads it; or None if the piece completes no
            step.
        """
        start, complete = len(self._text), None
        self._text += piece
        for place, character in enumerate(piece, start):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                if character == "{" and self._open == ["{", "["]:
                    self._steps += 1
                    complete = place if self._steps > 1 else None
                self._open.append(character)
            elif character in "}]" and self._open:
                self._open.pop()
        return None if complete is None else self._text[:complete].rstrip().removesuffix(",") + "]}"
