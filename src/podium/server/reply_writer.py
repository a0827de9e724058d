"""The interface by which each API writes its reply, whole or as the events of a stream.

A client sees the text of a stream once: text that a retry writes again is held back (`StreamedText`). If a worker is
called directly, its thoughts are shown. Otherwise the team's progress is shown in their place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from podium.errors import APIError
from podium.executor import StepText
from podium.server.served_answers import ServedAnswer, to_progress
from podium.server.streaming import COMMENT, StreamedText
from podium.team import Event
from podium.types import Profile


class ReplyWriter(ABC):
    """Writes the reply to one request.

    Args:
        pool: profiles of the workers, which plans refer to by number.
        direct: whether one worker is called directly, so that the thoughts are the worker's.
    """

    def __init__(self, pool: Sequence[Profile], *, direct: bool) -> None:
        self._pool = pool
        self._direct = direct
        self._sent = StreamedText()
        self._started = False

    @abstractmethod
    def whole(self, answer: ServedAnswer) -> dict[str, Any]:
        """The JSON of a reply in one piece."""

    def start(self) -> bytes:
        """The first events. They are empty after the first call, since a sign of life may have written them already."""
        started, self._started = self._started, True
        return b"" if started else self._first()

    def heartbeat(self) -> bytes:
        """What a stream sends to show that it is alive."""
        return self.start() or COMMENT

    def for_event(self, event: Event) -> bytes:
        """The stream events for an event of the runner, except for the end. Empty if it is not reported."""
        if isinstance(event, StepText) and not event.reasoning:
            text = self._sent.add(event.attempt, event.text)
            return self._write_text(text) if text else b""
        if isinstance(event, StepText):
            return self._write_thought(event.text) if self._direct else b""
        reported = to_progress(event, self._pool)
        return b"" if reported is None else self._write_progress(f"{reported[0]}\n", reported[1])

    @abstractmethod
    def end(self, answer: ServedAnswer) -> bytes:
        """The last events of a stream.

        Raises:
            APIError: the answer does not begin with the text that was sent.
        """

    @abstractmethod
    def fail(self, error: APIError) -> bytes:
        """The last events of a stream without an answer."""

    def _first(self) -> bytes:
        """The bytes that are written first."""
        return b""

    @abstractmethod
    def _write_text(self, text: str) -> bytes: ...

    @abstractmethod
    def _write_thought(self, text: str) -> bytes: ...

    @abstractmethod
    def _write_progress(self, line: str, facts: dict[str, Any]) -> bytes: ...
