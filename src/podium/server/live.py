"""The events of questions that this process is answering, for clients that follow them.

A question appends its events to a log and never waits for a reader. Each reader reads at its own pace and gets text
that has piled up as one piece. A log takes as much memory as the trace will. For one event loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime

from podium.executor import StepText
from podium.server.stream_events import ENDED, StreamEvent, started_event, text_event, to_stream_event
from podium.team import Event, QuestionEnded

KEPT_S = 5.0
"""Seconds for which an ended question stays here; by then the store has its trace."""
MAX_KEPT = 500
"""Ended questions that stay here at most."""


class LiveQuestions:
    """The event logs of running questions, by trace id.

    Args:
        kept_s, max_kept: how long ended questions are kept, and how many of them.
    """

    def __init__(self, *, kept_s: float = KEPT_S, max_kept: int = MAX_KEPT) -> None:
        self._kept_s = kept_s
        self._max_kept = max_kept
        self._logs: dict[str, EventLog] = {}
        self._ended: OrderedDict[str, asyncio.TimerHandle] = OrderedDict()

    def begin(
        self,
        trace_id: str,
        owner: str | None,
        *,
        question: str | None = None,
        planner: str | None = None,
        workers: Sequence[str] = (),
    ) -> Callable[[Event], None]:
        """Begin a question's log, and return the observer that fills it. `QuestionEnded` or `end` closes it.

        Args:
            owner: the key that may read the log, besides admins.
            question, planner, workers: for the first event; `workers` in the order of the pool.
        """
        log = self._logs[trace_id] = EventLog(trace_id, owner, question, planner, tuple(workers))

        def observe(event: Event) -> None:
            log.append(event)
            if isinstance(event, QuestionEnded):
                self.end(trace_id)

        return observe

    def end(self, trace_id: str) -> None:
        """Close a question's log. Does nothing for a question that has ended or is unknown."""
        log = self._logs.get(trace_id)
        if log is None or trace_id in self._ended:
            return
        log.end()
        later = asyncio.get_running_loop().call_later(self._kept_s, self.forget, trace_id)
        self._ended[trace_id] = later
        if len(self._ended) > self._max_kept:
            self.forget(next(iter(self._ended)))

    def forget(self, trace_id: str) -> None:
        """Drop a question. Current readers still read to its end; there are no new ones."""
        self._logs.pop(trace_id, None)
        if timer := self._ended.pop(trace_id, None):
            timer.cancel()

    def find(self, trace_id: str, owner: str | None) -> EventLog | None:
        """The question's log, if it is here and `owner` (None: an admin) may read it."""
        log = self._logs.get(trace_id)
        return log if log is not None and owner in (None, log.owner) else None

    def close(self) -> None:
        """Close and drop every log; readers finish."""
        for trace_id in tuple(self._logs):
            self._logs[trace_id].end()
            self.forget(trace_id)


class EventLog:
    """The events of one question so far."""

    def __init__(
        self,
        trace_id: str,
        owner: str | None,
        question: str | None,
        planner: str | None,
        workers: tuple[str, ...],
    ) -> None:
        self.owner = owner
        self._trace_id = trace_id
        self._question = question
        self._planner = planner
        self._workers = workers
        self._started_at = datetime.now(UTC)
        self._log: list[Event | _Text] = []
        self._closed = False
        self._readers: set[asyncio.Event] = set()

    def append(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, StepText) and event.reasoning:
            return  # The trace has it in the end.
        last = self._log[-1] if self._log else None
        if not isinstance(event, StepText):
            self._log.append(event)
        elif isinstance(last, _Text) and last.continues(event):
            last.add(event)
        else:
            self._log.append(_Text(event))
        self._wake()

    def end(self) -> None:
        """Close the log."""
        self._closed = True
        self._wake()

    async def events(self, after: str | None = None) -> AsyncIterator[StreamEvent]:
        """The question's events from the beginning to its end, as they happen.

        Args:
            after: the id of the last event that the reader has; an unknown id means none.
        """
        wake = asyncio.Event()
        self._readers.add(wake)
        try:
            number, read = self._position(after)
            if number < 0:
                number = 0
                yield self._started()
            while True:
                # Cleared before the log is read, so that an event that comes while the reader is busy wakes it.
                wake.clear()
                while number < len(self._log):
                    item = self._log[number]
                    if not isinstance(item, _Text):
                        number += 1
                        yield to_stream_event(str(number - 1), item, self._workers)
                    elif read < item.length:
                        text, read = item.since(read)
                        yield text_event(f"{number}.{read}", item.event, text)
                    elif number + 1 < len(self._log):
                        number, read = number + 1, 0
                    else:
                        break
                if self._closed:
                    return
                await wake.wait()
        finally:
            self._readers.discard(wake)

    def _started(self) -> StreamEvent:
        return started_event(
            "-1",
            self._trace_id,
            question=self._question,
            planner=self._planner,
            started_at=self._started_at.isoformat(timespec="milliseconds"),
            workers=self._workers,
        )

    def _position(self, after: str | None) -> tuple[int, int]:
        """The place where a reader continues: an index in the log (-1: before the first), and the bytes of a text there
        that the reader has."""
        if after == ENDED:
            return len(self._log), 0
        number, dot, read = (after or "").partition(".")
        if not (number + read).isdecimal() or len(number + read) > 18 or not (number + read).isascii():
            return (0, 0) if after == "-1" else (-1, 0)
        at = int(number)
        if at >= len(self._log):
            return -1, 0
        return (at, int(read)) if dot else (at + 1, 0)

    def _wake(self) -> None:
        for reader in self._readers:
            reader.set()


class _Text:
    """The pieces of text of one attempt at one step, joined in UTF-8: a quarter of the memory of a list."""

    __slots__ = ("_written", "event")

    def __init__(self, event: StepText) -> None:
        self.event = event
        self._written = bytearray()
        self.add(event)

    @property
    def length(self) -> int:
        return len(self._written)

    def continues(self, event: StepText) -> bool:
        """Whether `event` belongs to the same attempt."""
        own = self.event
        return (own.round, own.position, own.attempt) == (event.round, event.position, event.attempt)

    def add(self, event: StepText) -> None:
        self._written += event.text.encode("utf-8", "replace")

    def since(self, read: int) -> tuple[str, int]:
        """The text after the first `read` bytes, and the number of bytes now."""
        return self._written[read:].decode("utf-8", "replace"), len(self._written)
