"""The trace store of a server, in an SQLite file or a PostgreSQL database, for any event loop and thread.

A new trace waits in a `WriteQueue`. Reading runs in a thread. Commands that run once use `TraceStore`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Executable

from podium.errors import UnknownTraceError, UsageError
from podium.sqlite_files import data_folder
from podium.store.query import TraceFilters, TracePage, TraceStatements
from podium.store.repository import TraceRepository
from podium.store.spend import SpendQuery, SpendReport
from podium.store.write_queue import WriteQueue
from podium.trace.model import Outcome, Trace, TraceStatus
from podium.trace.serialization import DamagedTraceError, read_document, storable, to_row

T = TypeVar("T")
_log = logging.getLogger(__name__)
_EXPORT_BATCH = 32
_READ_AFTER_WRITE_S = 5.0
"""How long a reader waits until earlier traces are written. After that it reads what is there."""


class AsyncTraceStore:
    """Keeps traces.

    Args:
        location: a file, which is made if it is missing, or "postgresql://user:password@host:port/database".
        alone: whether no other server keeps its traces in the file. Other servers may always use a database.
        bounds: the limits of the `WriteQueue`.

    Raises:
        UsageError: the location cannot be opened, or is not a trace store. The message never repeats a password.
    """

    def __init__(self, location: str | Path, *, alone: bool = True, **bounds: Any) -> None:
        self._repository = TraceRepository(location)
        self._database = self._repository.database
        self.shared = not alone or self._database.path is None
        """Whether other servers may keep their traces in the same location."""
        spill = data_folder() if self._database.path is None else self._database.path.resolve().parent
        self._queue = WriteQueue(self._repository.write, self._database.display_name, spill=spill, **bounds)
        self.written_elsewhere: Callable[[], Awaitable[object]] | None = None
        """Waits until other processes, if there are any, have written the traces that they have made so far."""

    @property
    def waiting(self) -> int:
        """Traces that are not written yet."""
        return self._queue.waiting

    @property
    def write_problem(self) -> str | None:
        """A sentence that says why traces cannot be written now and have to wait. None if they can be written."""
        return self._queue.write_problem

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing, without waiting. It replaces a trace with the same id.

        Raises:
            StoreError: the queue is full, since traces could not be written for a long time.
        """
        self._queue.put(to_row(trace))

    async def get(self, prefix: str, owner: str | None = None) -> Trace:
        """The trace with the id `prefix`, else the only trace whose id begins with `prefix`. `owner` limits the search
        to the traces of this owner.

        Raises:
            UnknownTraceError: there is no such trace, or it has another owner.
            UsageError: several traces have such an id.
            StoreError: the database cannot be read.
        """
        if not prefix:
            raise UsageError("An empty trace id was given.")
        trace = await self._read(self._repository.find_by_prefix, prefix, owner)
        if trace is None and self.written_elsewhere is not None:
            await self.written_elsewhere()
            trace = await self._read(self._repository.find_by_prefix, prefix, owner)
        if trace is None:
            raise UnknownTraceError(f"There is no trace whose id begins with {storable(prefix)[:64]!r}.")
        return trace

    async def find(self, prefix: str, owner: str | None = None) -> Trace | None:
        """The trace that `get` finds. None if there is no such trace or there are several."""
        try:
            return await self.get(prefix, owner)
        except UsageError:
            return None

    async def page(self, filters: TraceFilters, cursor: str | None = None, limit: int = 50) -> TracePage:
        """At most `limit` traces that pass the filters, from `cursor` on. Traces that are added between two calls do
        not shift the pages. If a filter has no index, one page reads at most `SCANNED` traces, so it may have fewer
        than `limit` although more traces pass.

        Raises:
            UsageError: the cursor was not written by Podium, or the limit is not from 1 to 200.
            StoreError: see `get`.
        """
        return await self._read(self._repository.page, filters, cursor, limit)

    async def spend(self, query: SpendQuery) -> SpendReport:
        """What was spent in the days of `query`."""
        return await self._read(self._repository.spend, query)

    async def newest(self, count: int) -> tuple[Trace, ...]:
        """The newest traces. Damaged rows among the newest `count` rows are left out."""
        return await self._read(self._repository.newest, count)

    async def with_outcomes(self, planner: str, count: int) -> tuple[Trace, ...]:
        """The newest `count` traces of a planner whose answers were judged right or wrong, oldest first."""
        right = await self._read(
            self._repository.newest, count, TraceFilters(planner=planner, outcome="right")
        )
        wrong = await self._read(
            self._repository.newest, count, TraceFilters(planner=planner, outcome="wrong")
        )
        return tuple(sorted((*right, *wrong), key=lambda trace: (trace.started_at, trace.id))[-count:])

    async def delete(self, id: str, owner: str | None = None, *, status: TraceStatus | None = None) -> bool:
        """Delete the trace with exactly this id and, if given, this owner and status. Returns False if there is none.
        If several calls in any processes delete one trace, only one of them gets True."""
        return await self._read(self._repository.delete, id, owner, status)

    async def set_outcome(self, prefix: str, outcome: Outcome | None, owner: str | None = None) -> Trace:
        """Give the trace that `get` finds this outcome, and return the trace. None removes the outcome."""
        trace = (await self.get(prefix, owner)).model_copy(update={"outcome": outcome})
        if not await self._database.call(self._repository.set_outcome, trace, owner):
            raise UnknownTraceError(f"The trace {trace.id} was deleted meanwhile, or is another one now.")
        return trace

    async def rows(self, statement: Executable) -> Sequence[Sequence[Any]]:
        """Run a statement about another table of `schema`, and return its rows.

        Raises:
            StoreError: the database cannot be used.
        """
        return await self._database.rows(statement)

    async def wait_until_flushed(self) -> None:
        """Wait until all traces that were added so far are in the database or in spill files."""
        await asyncio.wrap_future(self._queue.next_flush())

    async def export(self, filters: TraceFilters) -> AsyncIterator[str]:
        """The traces that pass the filters, oldest first, each as one line of JSON without the line break. Damaged
        traces are left out, and named in the log."""
        await self._wait_for_writes()
        after: tuple[float, str] | None = None
        statements = TraceStatements(filters)
        while True:
            rows = await self.rows(statements.documents(after, _EXPORT_BATCH))
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
        """Write the traces that wait, then close the database. Calling this twice is fine.

        Raises:
            StoreError: traces could not be written. The message names their spill files.
        """
        try:
            await asyncio.to_thread(self._queue.close)
        finally:
            await asyncio.to_thread(self._database.close)

    async def _read(self, work: Callable[..., T], *args: Any) -> T:
        """Run `work` in a thread, once the traces that were added so far are written."""
        await self._wait_for_writes()
        return await self._database.call(work, *args)

    async def _wait_for_writes(self) -> None:
        flushed = self._queue.next_flush()
        if not flushed.done():
            await asyncio.wait([asyncio.wrap_future(flushed)], timeout=_READ_AFTER_WRITE_S)
