"""The questions that are being answered in this process, for whoever wants to watch.

A question never waits for its watchers: it writes into a log of its own, and each of them reads there at its own pace,
pieces of text that came meanwhile together. The log is as long as the trace will be. All in one event loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime

from podium.executor import StepText
from podium.orchestrator import Event, QuestionEnded
from podium.server.stream_events import ENDED, StreamEvent, began, happened, written

KEPT_S = 5.0
"""That a question which has ended can be watched from here; by then the store has it."""
MOST_KEPT = 500
"""Questions that have ended."""


class Live:
    """Questions by the ids of their traces.

    Args:
        kept_s, most_kept: how long, and how many, those that have ended are remembered.
    """

    def __init__(self, *, kept_s: float = KEPT_S, most_kept: int = MOST_KEPT) -> None:
        self._kept_s = kept_s
        self._most_kept = most_kept
        self._courses: dict[str, RecordedSource] = {}
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
        """A question begins: gives its observer. `QuestionEnded`, or `end`, ends it.

        Args:
            owner: who may watch, besides admins.
            question, planner, workers: told first, where they are known; `workers` in the order of the pool.
        """
        course = self._courses[trace_id] = RecordedSource(trace_id, owner, question, planner, tuple(workers))

        def observe(event: Event) -> None:
            course.tell(event)
            if isinstance(event, QuestionEnded):
                self.end(trace_id)

        return observe

    def end(self, trace_id: str) -> None:
        """No more will happen; calling it for a question that has ended, or is not known, changes nothing."""
        course = self._courses.get(trace_id)
        if course is None or trace_id in self._ended:
            return
        course.end()
        later = asyncio.get_running_loop().call_later(self._kept_s, self.forget, trace_id)
        self._ended[trace_id] = later
        if len(self._ended) > self._most_kept:
            self.forget(next(iter(self._ended)))

    def forget(self, trace_id: str) -> None:
        """Those who watch it see its end still; nobody can begin to."""
        self._courses.pop(trace_id, None)
        if timer := self._ended.pop(trace_id, None):
            timer.cancel()

    def find(self, trace_id: str, owner: str | None) -> RecordedSource | None:
        """The question, if it is remembered and `owner` (None: an admin) may watch it."""
        course = self._courses.get(trace_id)
        return course if course is not None and owner in (None, course.owner) else None

    def events(self, trace_id: str, after: str | None = None) -> AsyncIterator[StreamEvent]:
        """What happened so far, then what happens, until the end.

        Args:
            after: the place of the last event that is known already; one that is none of ours: none.

        Raises:
            KeyError: the question is not remembered.
        """
        return self._courses[trace_id].events(after)

    def close(self) -> None:
        """Forget all, and let those who watch go."""
        for trace_id in tuple(self._courses):
            self._courses[trace_id].end()
            self.forget(trace_id)


class RecordedSource:
    """What has happened to one question so far."""

    def __init__(
        self,
        trace_id: str,
        owner: str | None,
        question: str | None,
        planner: str | None,
        workers: tuple[str, ...],
    ) -> None:
        self.owner = owner
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._began = began(
            "-1", trace_id, question=question, planner=planner, started_at=started_at, workers=workers
        )
        self._workers = workers
        self._log: list[Event | _Text] = []
        self._over = False
        self._watchers: set[asyncio.Event] = set()

    def tell(self, event: Event) -> None:
        """Something has happened."""
        last = self._log[-1] if self._log else None
        if not isinstance(event, StepText):
            self._log.append(event)
        elif isinstance(last, _Text) and last.goes_on(event):
            last.add(event)
        else:
            self._log.append(_Text(event))
        self._wake()

    def end(self) -> None:
        """Nothing more will happen."""
        self._over = True
        self._wake()

    async def events(self, after: str | None = None) -> AsyncIterator[StreamEvent]:
        """See `Live.events`."""
        async for stream_event in self.watch(after, None):
            if stream_event is not None:
                yield stream_event

    async def watch(self, after: str | None, beat_s: float | None) -> AsyncIterator[StreamEvent | None]:
        """As `events`; None whenever nothing has happened for `beat_s` seconds."""
        wake = asyncio.Event()
        self._watchers.add(wake)
        try:
            number, read = self._position(after)
            if number < 0:
                number = 0
                yield self._began
            while True:
                # Before the log is read: what is told while a watcher is busy wakes it at once.
                wake.clear()
                while number < len(self._log):
                    item = self._log[number]
                    if not isinstance(item, _Text):
                        number += 1
                        yield happened(str(number - 1), item, self._workers)
                    elif read < item.length:
                        text, read = item.since(read)
                        yield written(f"{number}.{read}", item.event, text)
                    elif number + 1 < len(self._log):
                        number, read = number + 1, 0
                    else:
                        break
                if self._over:
                    return
                try:
                    async with asyncio.timeout(beat_s):
                        await wake.wait()
                except TimeoutError:
                    yield None
        finally:
            self._watchers.discard(wake)

    def _position(self, after: str | None) -> tuple[int, int]:
        """Where to read on: a number in the log (-1: before it), and what of a text there is known."""
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
        for watcher in self._watchers:
            watcher.set()


class _Text:
    """Pieces of one try of one step, put together; kept in UTF-8, a quarter of what a list of pieces takes."""

    __slots__ = ("_written", "event")

    def __init__(self, event: StepText) -> None:
        self.event = event
        self._written = bytearray()
        self.add(event)

    @property
    def length(self) -> int:
        return len(self._written)

    def goes_on(self, event: StepText) -> bool:
        """Whether `event` is of the same try."""
        own = self.event
        return (own.round, own.position, own.attempt) == (event.round, event.position, event.attempt)

    def add(self, event: StepText) -> None:
        self._written += event.text.encode("utf-8", "replace")

    def since(self, read: int) -> tuple[str, int]:
        """The text behind the first `read` bytes, and how many there are now."""
        return self._written[read:].decode("utf-8", "replace"), len(self._written)
