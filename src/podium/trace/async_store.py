"""The trace store of a server: one table of a database, used from any event loop and thread.

`AsyncTraceStore` is the part that SQLite and PostgreSQL share; `sqlite_store` and `postgres_store` run the statements,
and pass the same tests. `podium.trace.store` opens the right one. Commands that run once use its `TraceStore`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podium.errors import UnknownTraceError, UsageError
from podium.trace.background_table import DELETE_BACKGROUND
from podium.trace.model import Feedback, Trace, TraceStatus
from podium.trace.query import Dialect, Filters, Page, Statement, write_cursor
from podium.trace.serialization import DamagedTraceError, TraceRow, plain, read_document, to_row
from podium.trace.spend import Spend, SpendQuery
from podium.trace.write_queue import WriteQueue

_log = logging.getLogger(__name__)
_BEYOND = 1e308
_EXPORT_BATCH = 32
"""Traces of an export that are in memory together."""
_READ_AFTER_WRITE_S = 5.0
"""How long a reader waits for traces that were added before; then it reads what is there."""


class AsyncTraceStore(ABC):
    """Keeps traces. May be used from any event loop and thread.

    Args:
        place: the store as messages name it.
        dialect: of its database.
        spill: the folder for files of traces that cannot be written.
        bounds: passed on to the `WriteQueue`.
    """

    def __init__(self, place: str, dialect: Dialect, spill: Path, **bounds: Any) -> None:
        self.place = place
        self._dialect = dialect
        self._queue = WriteQueue(self._write, place, spill=spill, **bounds)
        self.written_elsewhere: Callable[[], Awaitable[object]] | None = None
        """Waits until other processes have written the traces that they have made so far; None: there are none."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether other servers may keep their traces in it too."""

    @property
    def waiting(self) -> int:
        """Traces that are not written yet."""
        return self._queue.waiting

    @property
    def trouble(self) -> str | None:
        """A sentence that says why traces cannot be written now and have to wait. None: they can be written."""
        return self._queue.trouble

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing, without waiting; it replaces one with the same id.

        Raises:
            StoreError: the queue is full, because traces could not be written for long.
        """
        self._queue.put(to_row(trace))

    async def get(self, prefix: str, owner: str | None = None) -> Trace:
        """The trace with the id `prefix`, else the only one whose id begins with it. With `owner`: among this owner's
        traces.

        Raises:
            UnknownTraceError: there is none, or not for this owner.
            UsageError: there are several.
            StoreError: the database cannot be read.
        """
        wanted = plain(prefix)
        if not wanted:
            raise UsageError("An empty trace id was given.")
        rows = await self._read(self._dialect.beginning(wanted, owner))
        if not rows and self.written_elsewhere is not None:
            await self.written_elsewhere()
            rows = await self._read(self._dialect.beginning(wanted, owner))
        if not rows:
            raise UnknownTraceError(f"There is no trace whose id begins with {wanted[:64]!r}.")
        return the_one(rows, wanted)

    async def page(self, filters: Filters, cursor: str | None = None, limit: int = 50) -> Page:
        """At most `limit` traces that pass the filters, from `cursor` on. Traces that are added between two calls do
        not shift the pages. With a filter that no index answers, one page reads at most `SCANNED` traces, and so may
        have fewer than `limit` although there are others.

        Raises:
            UsageError: the cursor is not one of ours, or the limit is not from 1 to 200.
            StoreError: as `get`.
        """
        rows = await self._read(self._dialect.page(filters, cursor, limit))
        there = rows[:limit]
        listed = [self._dialect.summary(row) for row in there]
        last = _place(there[-1:]) if len(rows) > limit else None
        if last is None and (scan := self._dialect.end_of_scan(filters, cursor)) is not None:
            last = _place(await self._rows(scan))
            if last is not None and there:  # The scan ends earlier now, if traces were added since.
                last = min(last, (there[-1][1], there[-1][0]))
        total: int | None = None
        if cursor is None and last is None:
            total = len(rows)
        elif cursor is None and len(rows) > limit:
            ((total,),) = await self._rows(self._dialect.count(filters))
        return Page(
            traces=tuple(summary for summary in listed if summary is not None),
            next=None if last is None else write_cursor(*last),
            total=total,
            damaged=listed.count(None),
        )

    async def spend(self, query: SpendQuery) -> Spend:
        """What was spent in the days of `query`.

        Raises:
            StoreError: as `get`.
        """
        sums = await self._read(query.sums(self._dialect))
        return Spend.read(query, sums, await self._rows(query.feedback(self._dialect)))

    async def newest(self, count: int) -> tuple[Trace, ...]:
        """The newest traces, whole. Of the newest `count` rows, those that are damaged are left out."""
        return _whole(await self._read(self._dialect.newest(count)))

    async def judged(self, planner: str, count: int) -> tuple[Trace, ...]:
        """The newest `count` traces of a planner whose answers were judged right or wrong, oldest first."""
        right = await self._read(self._dialect.newest(count, Filters(planner=planner, outcome="right")))
        wrong = await self._rows(self._dialect.newest(count, Filters(planner=planner, outcome="wrong")))
        traces = await asyncio.to_thread(_whole, (*right, *wrong))
        return tuple(sorted(traces, key=lambda trace: (trace.started_at, trace.id))[-count:])

    async def delete(self, id: str, owner: str | None = None, *, status: TraceStatus | None = None) -> bool:
        """Delete the trace with exactly this id, only of `owner` and with `status`, if given. False: there is none.

        Of several calls for one trace, in any process, one alone gets True.
        """
        deleted = bool(await self._read(self._dialect.delete(id, owner, status)))
        if deleted:
            for statement in DELETE_BACKGROUND:
                await self.rows(statement, plain(id))
        return deleted

    async def judge(self, prefix: str, outcome: Feedback | None, owner: str | None = None) -> Trace:
        """Give the trace that `get` finds this outcome, and return it. None: take its outcome away.

        Raises:
            UnknownTraceError, UsageError, StoreError: as `get`.
        """
        trace = (await self.get(prefix, owner)).model_copy(update={"outcome": outcome})
        if not await self._rows(self._dialect.judge(to_row(trace), owner)):
            raise UnknownTraceError(f"The trace {trace.id} was deleted meanwhile, or is another one now.")
        return trace

    async def rows(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement of another table in the same database (see `Dialect.adapt`), and return its rows.

        Raises:
            StoreError: the database cannot be used.
        """
        return await self._rows((self._dialect.adapt(statement), values))

    async def flushed(self) -> None:
        """Wait until the traces that were added so far are written, or spilled to files."""
        await asyncio.wrap_future(self._queue.flushed())

    async def export(self, filters: Filters) -> AsyncIterator[str]:
        """The traces that pass the filters, oldest first, each as one line of JSON without the line break.

        Damaged ones are left out, and named in the log.
        """
        await self._wait_for_writes()
        after: tuple[float, str] | None = None
        while True:
            rows = await self._rows(self._dialect.documents(filters, after, _EXPORT_BATCH))
            for started, id_, document in rows:
                after = (started, id_)
                try:
                    await asyncio.to_thread(read_document, document)
                except DamagedTraceError as error:
                    _log.warning("The damaged trace %s is left out of an export: not a trace%s.", id_, error)
                else:
                    yield document
            if len(rows) < _EXPORT_BATCH:
                return

    async def close(self) -> None:
        """Write the traces that wait, then close the database. Calling twice is fine.

        Raises:
            StoreError: traces could not be written; the message names their files.
        """
        try:
            await asyncio.to_thread(self._queue.close)
        finally:
            await asyncio.to_thread(self._disconnect)

    async def _read(self, statement: Statement) -> Sequence[Sequence[Any]]:
        """Wait until the traces added so far are written, then run the statement and return its rows."""
        await self._wait_for_writes()
        return await self._rows(statement)

    async def _wait_for_writes(self) -> None:
        flushed = self._queue.flushed()
        if not flushed.done():
            await asyncio.wait([asyncio.wrap_future(flushed)], timeout=_READ_AFTER_WRITE_S)

    @abstractmethod
    async def _rows(self, statement: Statement) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows.

        Raises:
            StoreError: the database cannot be read.
        """

    @abstractmethod
    def _write(self, rows: Sequence[TraceRow]) -> None:
        """Write all rows or none, in the thread of the queue.

        Raises:
            StoreError: they could not be written.
        """

    @abstractmethod
    def _disconnect(self) -> None:
        """Close what is open. Calling twice is fine."""


def the_one(rows: Sequence[Sequence[Any]], wanted: str) -> Trace:
    """The trace with the id `wanted`, or the only one, of the rows of `Dialect.beginning`, of which there is one.

    Raises:
        UsageError: there are several, or it is damaged.
    """
    if len(rows) > 1 and rows[0][0] != wanted:
        some = ", ".join(row[0] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
        raise UsageError(f"Several traces have an id that begins with {wanted!r}: {some}; give more of it.")
    try:
        return read_document(rows[0][1])
    except DamagedTraceError as error:
        raise UsageError(f"The trace {rows[0][0]} is damaged: its document is not a trace{error}.") from None


def _place(rows: Sequence[Sequence[Any]]) -> tuple[float, str] | None:
    """Start and id of a trace, of a row that begins with id and start; None: there is no row."""
    if not rows:
        return None
    id_, started = rows[0][:2]
    if not isinstance(started, float | int) or not math.isfinite(started):
        # Of a damaged row. Both databases sort what is no number above all numbers, and nothing below them.
        started = -_BEYOND if started is None else _BEYOND
    return started, id_


def _whole(rows: Sequence[Sequence[Any]]) -> tuple[Trace, ...]:
    """The traces of rows of one document, without those that are damaged."""
    traces = []
    for (document,) in rows:
        with suppress(DamagedTraceError):
            traces.append(read_document(document))
    return tuple(traces)
