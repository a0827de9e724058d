"""The text of an answer while it is written: what of it may be sent already.

A try that breaks off and another that begins anew must not be read as one text: only what goes on from what was sent
is sent.
"""

from __future__ import annotations


class Sent:
    """The text that a caller has of one answer."""

    def __init__(self) -> None:
        self._tries: dict[int, list[str]] = {}
        self._sent: list[str] = []
        self._alone = True
        """Whether one try alone has written, all of which was sent."""

    @property
    def text(self) -> str:
        """All that was sent."""
        return "".join(self._sent)

    def take(self, attempt: int, piece: str) -> str:
        """The text to send now that try number `attempt` has written `piece`; often the piece."""
        written = self._tries.setdefault(attempt, [])
        written.append(piece)
        if len(self._tries) > 1:
            self._alone = False
        if self._alone:
            self._sent.append(piece)
            return piece
        return self._go_on("".join(written)) or ""

    def end(self, answer: str) -> str | None:
        """The rest to send now that the answer is known; None: it is another than what was sent."""
        rest = self._go_on(answer)
        if rest is None and self.text.strip() == answer.strip():
            return ""
        return rest

    def _go_on(self, text: str) -> str | None:
        sent = self.text
        if not text.startswith(sent):
            return None
        rest = text[len(sent) :]
        self._sent = [text]
        return rest
