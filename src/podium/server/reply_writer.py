"""The interface by which each API writes its reply, whole or as the events of a stream.

A client sees the text of a stream once: what a retry writes anew is held back (`StreamedText`). What a worker thinks is
shown where the worker is called directly; otherwise the team's progress stands in its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from podium.errors import APIError
from podium.executor import StepText
from podium.server.served_answers import ServedAnswer, progress
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
        self._texts: dict[int, StreamedText] = {}
        self._started = False

    @abstractmethod
    def whole(self, answers: Mapping[int, ServedAnswer], failed: Sequence[ServedAnswer]) -> dict[str, Any]:
        """The JSON of a reply in one piece.

        Args:
            answers: at least one, by number.
            failed: questions without an answer, whose cost and usage count too.
        """

    def start(self) -> bytes:
        """The first events; empty after the first call, as a sign of life may have written them."""
        started, self._started = self._started, True
        return b"" if started else self._first()

    def heartbeat(self) -> bytes:
        """Send a sign of life."""
        return self.start() or COMMENT

    def for_event(self, event: Event, number: int = 0) -> bytes:
        """The events for one of the runner's, of answer `number`, except for the end; empty if it is not reported."""
        if isinstance(event, StepText) and not event.reasoning:
            text = self._sent(number).add(event.attempt, event.text)
            return self._write_text(text, number) if text else b""
        if isinstance(event, StepText):
            return self._write_thought(event.text, number) if self._direct else b""
        reported = progress(event, self._pool)
        return b"" if reported is None else self._write_progress(f"{reported[0]}\n", reported[1], number)

    @abstractmethod
    def end(
        self, answer: ServedAnswer | None, answers: Sequence[ServedAnswer] = (), number: int = 0
    ) -> bytes:
        """The last events of answer `number`.

        Args:
            answer: None if there is none, while others may come.
            answers: all, with those that failed, once the last one has ended.

        Raises:
            APIError: the answer does not begin with the text that was sent.
        """

    @abstractmethod
    def fail(self, error: APIError) -> bytes:
        """The last events where there is no answer."""

    def _first(self) -> bytes:
        """The bytes that are written first."""
        return b""

    @abstractmethod
    def _write_text(self, text: str, number: int) -> bytes: ...

    @abstractmethod
    def _write_thought(self, text: str, number: int) -> bytes: ...

    @abstractmethod
    def _write_progress(self, line: str, facts: dict[str, Any], number: int) -> bytes: ...

    def _sent(self, number: int = 0) -> StreamedText:
        """The text that was sent of an answer."""
        return self._texts.setdefault(number, StreamedText())
