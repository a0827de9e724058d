"""The text of one answer as a reader gets it, although several tries may write it."""

from __future__ import annotations


class ContinuedText:
    """The text that was sent of an answer whose tries each begin it again. The reader must not take two tries for one
    text, so once a second try writes, only text that continues the sent text is sent."""

    def __init__(self) -> None:
        self._attempts: dict[int, list[str]] = {}
        self._sent: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._sent)

    def add(self, attempt: int, piece: str) -> str:
        """The text to send after attempt number `attempt` wrote `piece`: usually the piece itself."""
        written = self._attempts.setdefault(attempt, [])
        written.append(piece)
        if len(self._attempts) == 1:
            self._sent.append(piece)
            return piece
        return self.continue_with("".join(written)) or ""

    def continue_with(self, text: str) -> str | None:
        """Send what of a whole text was not sent, and return it. None if the text does not begin with what was sent."""
        sent = self.text
        if not text.startswith(sent):
            return None
        self._sent = [text]
        return text[len(sent) :]
