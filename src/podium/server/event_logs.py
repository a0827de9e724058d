"""Logs of the events of questions that this process answers, for clients that follow them.

A question appends its events to its logs and never waits for a reader. Each reader reads at its own pace. `EventLogs`
finds a log here or at another process of the server. `QuestionLog` has the stream events of the viewer's API; other
APIs have logs of their own. For one event loop.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from podium.executor import StepText
from podium.server.stream_events import ENDED, started_event, text_event, to_stream_event
from podium.server.streaming import HEARTBEAT, Write
from podium.team import Event

if TYPE_CHECKING:
    from podium.server.process_peers import ProcessPeers

KEPT_S = 5.0
"""Seconds for which an ended question stays here. After that the store has its trace."""
MAX_KEPT = 500
"""The most ended questions that stay here."""


class EventLog(ABC):
    """The events of one question so far. Only the key `owner` and admins may read them."""

    def __init__(self, owner: str | None) -> None:
        self.owner = owner
        self._ended = False
        self._readers: set[asyncio.Event] = set()

    def begin(self) -> None:  # noqa: B027 - most logs have no event for it
        """Record that the question's turn has come."""

    @abstractmethod
    def append(self, event: Event) -> None:
        """Add an event."""

    @abstractmethod
    def cursor_after(self, after: str | None) -> tuple[int, int]:
        """The cursor after the event `after`, the last that a reader has read. `after` is None if it has read none."""

    @abstractmethod
    def read(self, cursor: tuple[int, int]) -> tuple[bytes, tuple[int, int]] | None:
        """The event at a cursor, in the form of a stream, and the next cursor. None if there is no event yet."""

    def end(self) -> None:
        """Close the log."""
        self._ended = True
        self.wake()

    def wake(self) -> None:
        """Let the readers look again."""
        for reader in self._readers:
            reader.set()

    async def events(self, after: str | None = None) -> AsyncIterator[bytes]:
        """The question's events to its end, as they happen: all, or those after the event named `after`, if it is
        known."""
        wake = asyncio.Event()
        self._readers.add(wake)
        try:
            cursor = self.cursor_after(after)
            while True:
                # Clear it before reading the log, so that an event that comes while the reader is busy wakes the
                # reader.
                wake.clear()
                while (entry := self.read(cursor)) is not None:
                    event, cursor = entry
                    yield event
                if self._ended:
                    return
                await wake.wait()
        finally:
            self._readers.discard(wake)


class EventLogs:
    """The event logs of running questions, and of those that ended a while ago, by trace id.

    Args:
        peers: the other processes of the server, whose logs `send` reads too.
        name: the peers' name for these logs.
        kept_s, max_kept: how long ended questions are kept, and how many of them.
    """

    def __init__(
        self,
        peers: ProcessPeers | None = None,
        name: str = "events",
        *,
        kept_s: float = KEPT_S,
        max_kept: int = MAX_KEPT,
    ) -> None:
        self._peers = peers
        self._name = name
        self._kept_s = kept_s
        self._max_kept = max_kept
        self.running: set[str] = set()
        """The trace ids of the questions that have not ended."""
        self._logs: dict[str, EventLog] = {}
        self._ended: OrderedDict[str, asyncio.TimerHandle] = OrderedDict()
        if peers is not None:
            peers.handlers[name] = self._send_to_peer

    def begin(self, trace_id: str, log: EventLog) -> None:
        """Keep a question's log. `end` closes it."""
        self._logs[trace_id] = log
        self.running.add(trace_id)

    def end(self, trace_id: str) -> None:
        """Close a question's log. Does nothing for a question that has ended or is unknown."""
        log = self._logs.get(trace_id)
        if log is None or trace_id in self._ended:
            return
        log.end()
        self.running.discard(trace_id)
        later = asyncio.get_running_loop().call_later(self._kept_s, self.forget, trace_id)
        self._ended[trace_id] = later
        if len(self._ended) > self._max_kept:
            self.forget(next(iter(self._ended)))

    def forget(self, trace_id: str) -> None:
        """Drop a question. Current readers still read to its end, but new readers do not find it."""
        self._logs.pop(trace_id, None)
        self.running.discard(trace_id)
        if timer := self._ended.pop(trace_id, None):
            timer.cancel()

    def find(self, trace_id: str, owner: str | None) -> EventLog | None:
        """The question's log. None if it is not here, or `owner` may not read it. The owner of an admin is None."""
        log = self._logs.get(trace_id)
        return log if log is not None and owner in (None, log.owner) else None

    async def send(self, write: Write, trace_id: str, owner: str | None, after: str | None) -> bool:
        """Write a heartbeat, and the events of a question of any process of this server, as `EventLog.events`.

        Returns False if no process has the question's log.
        """
        log = self.find(trace_id, owner)
        if log is not None:
            await write(HEARTBEAT)
            async for event in log.events(after):
                await write(event)
            return True
        has_log = False
        if self._peers is not None:
            asked = self._peers.stream(self._name, id=trace_id, owner=owner, after=after)
            async with aclosing(asked) as pieces:
                async for piece in pieces:
                    has_log = True
                    await write(piece)
        return has_log

    def close(self) -> None:
        """Close and drop every log. Readers finish."""
        for trace_id in tuple(self._logs):
            self._logs[trace_id].end()
            self.forget(trace_id)

    async def _send_to_peer(self, arguments: dict[str, Any], write: Write) -> None:
        """Send the events of a question of this process to another process."""
        trace_id, owner = arguments["id"], arguments["owner"]
        if self.find(trace_id, owner) is not None:
            await self.send(write, trace_id, owner, arguments["after"])


class QuestionLog(EventLog):
    """The stream events of `/api/traces/{id}/events`. Text that has piled up is read as one piece. A log takes as much
    memory as the trace will take. Plans refer to `workers` by number."""

    def __init__(
        self,
        trace_id: str,
        owner: str | None,
        *,
        question: str | None = None,
        planner: str | None = None,
        workers: Sequence[str] = (),
    ) -> None:
        super().__init__(owner)
        self._started = partial(
            started_event, "-1", trace_id, question=question, planner=planner, workers=workers
        )
        self._started_at = datetime.now(UTC)
        self._workers = tuple(workers)
        self._log: list[Event | _Text] = []

    def append(self, event: Event) -> None:
        if isinstance(event, StepText) and event.reasoning:
            return  # The trace will have this event.
        last = self._log[-1] if self._log else None
        if not isinstance(event, StepText):
            self._log.append(event)
        elif isinstance(last, _Text) and last.continues(event):
            last.add(event)
        else:
            self._log.append(_Text(event))
        self.wake()

    def cursor_after(self, after: str | None) -> tuple[int, int]:
        """An index in the log, or -1 before the first event, and how many bytes of a text there the reader has."""
        if after == ENDED:
            return len(self._log), 0
        number, dot, read = (after or "").partition(".")
        if not (number + read).isdecimal() or len(number + read) > 18 or not (number + read).isascii():
            return (0, 0) if after == "-1" else (-1, 0)
        index = int(number)
        if index >= len(self._log):
            return -1, 0
        return (index, int(read)) if dot else (index + 1, 0)

    def read(self, cursor: tuple[int, int]) -> tuple[bytes, tuple[int, int]] | None:
        index, read = cursor
        if index < 0:
            started_at = self._started_at.isoformat(timespec="milliseconds")
            return self._started(started_at=started_at), (0, 0)
        if index >= len(self._log):
            return None
        item = self._log[index]
        if not isinstance(item, _Text):
            return to_stream_event(str(index), item, self._workers), (index + 1, 0)
        if read < item.length:
            text, read = item.since(read)
            return text_event(f"{index}.{read}", item.event, text), (index, read)
        return self.read((index + 1, 0)) if index + 1 < len(self._log) else None


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
