"""The store that keeps traces, in an SQLite file in WAL mode or in a PostgreSQL database.

A new trace waits in a `WriteQueue`, so adding never waits for the disk. A process that is killed loses at most what it
had not flushed, and the file stays whole. Several processes may use one file or database. Rows that somebody damaged in
the database are left out, and all other rows are still found.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self, TypeVar

from podium.errors import UnknownTraceError, UnreadableTraceError, UsageError
from podium.files.locations import data_folder, refuse_database_address, refuse_malformed_address
from podium.store.database import Database
from podium.store.query import (
    ALL_TRACES,
    MAX_PAGE,
    SelectBuilder,
    TraceFilters,
    TracePage,
    TraceSummary,
    prefix_statement,
    read_summary,
    write_cursor,
)
from podium.store.schema import TRACE_TABLES, WAY_OUT
from podium.store.spend_report import SpendQuery, SpendReport
from podium.store.trace_rows import TraceRows
from podium.store.write_queue import WriteQueue
from podium.trace.model import Outcome, Trace, TraceStatus
from podium.trace.serialization import DamagedTraceError, read_document, storable, to_row

T = TypeVar("T")
_LOG = logging.getLogger("podium.store")
_BATCH = 32
"""How many documents are in memory at a time."""
_READ_AFTER_WRITE_S = 5.0
"""How long a reader waits until earlier traces are written. After that it reads what is there."""
_BEYOND = 1e308


class TraceStore:
    """Traces by id, newest first. Any thread may use it. All methods except `add` block: servers use `to_thread`.

    Args:
        location: a file, or "postgresql://user:password@host:port/database".
        create: whether a missing file is made with its folders. If not, a file that may not be written is only read.
        read_only: whether an existing file is only read.
        alone: whether no other server keeps its traces in the file. Other servers may always use a database.
        bounds: the limits of the `WriteQueue`.

    Raises:
        UsageError: the location is missing, cannot be opened, or is not a trace store. The message never repeats a
            password.
        StoreError: raised by each method if the database cannot be used.
    """

    def __init__(
        self,
        location: Path | str,
        *,
        create: bool = True,
        read_only: bool = False,
        alone: bool = True,
        **bounds: Any,
    ) -> None:
        refuse = refuse_database_address if isinstance(location, Path) else refuse_malformed_address
        refuse(location)
        address = str(location)
        file = None if "://" in address else Path(location).expanduser()
        if file is not None and (read_only or not create):
            if not file.is_file():
                raise UsageError(f"There is no trace store at {file}; `podium ask` makes one, or {WAY_OUT}.")
            read_only = read_only or not os.access(file, os.W_OK)
        self.database = Database(file or address, TRACE_TABLES, read_only=read_only)
        self.name = self.database.display_name
        """The file or the address, without a password."""
        self.shared = not alone or file is None
        """Whether other servers may keep their traces in the same location."""
        self.damaged = 0
        """How many traces the latest `list`, `iterate` or `export` has left out so far."""
        self.flush_elsewhere: Callable[[], object] | None = None
        """Waits until the other processes of the server have written the traces that they have made so far."""
        self._rows = TraceRows(self.database)
        spill_folder = data_folder() if file is None else file.resolve().parent
        self._queue = WriteQueue(self._rows.write, self.name, spill_folder=spill_folder, **bounds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """What `work`, such as one of the methods, returns for these arguments. It runs in a thread, and goes on even
        if the caller is cancelled."""
        return await self.database.to_thread(work, *args)

    @property
    def waiting(self) -> int:
        """Traces that are not written yet."""
        return self._queue.waiting

    @property
    def write_problem(self) -> str | None:
        """A sentence that says why traces cannot be written now and have to wait. None if they can be written."""
        return self._queue.write_problem

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing, without waiting. It replaces a trace with the same id, and is durable after
        `flush` or `close`.

        Raises:
            StoreError: the queue is full, since traces could not be written for a long time.
        """
        self._queue.put(to_row(trace))

    def add_all(self, traces: Iterable[Trace]) -> int:
        """Write all of `traces`, or none if iterating over them raises. They are durable. Returns their number."""
        self.flush()
        count = 0
        # The traces are collected in a temporary file, so that a slow source never locks the store.
        with TemporaryFile() as spool:
            for trace in traces:
                pickle.dump(to_row(trace), spool)
                count += 1
            spool.seek(0)
            self._rows.write(pickle.load(spool) for _ in range(count))
        return count

    def flush(self) -> None:
        """Return once everything added before is on disk.

        Raises:
            StoreError: traces could not be written. They are written once that is possible again.
        """
        self._queue.flush()

    def close(self) -> None:
        """Flush, then close the file or the connections. Calling this twice is fine.

        Raises:
            StoreError: traces could not be written. The message names their spill files.
        """
        try:
            self._queue.close()
        finally:
            self.database.close()

    def get(self, prefix: str, owner: str | None = None) -> Trace:
        """The trace with the id `prefix`, else the only trace whose id begins with `prefix`. `owner` limits the search
        to the traces of this owner.

        Raises:
            UnknownTraceError: there is no such trace, or it has another owner.
            UnreadableTraceError: the trace is damaged.
            UsageError: several traces have such an id.
        """
        wanted = storable(prefix)
        hint = "`podium traces list` shows the ids there are."
        if not wanted:
            raise UsageError(f"An empty trace id was given; {hint}")
        statement = prefix_statement(wanted, owner)
        rows = self._read(statement)
        if not rows and self.flush_elsewhere is not None:
            self.flush_elsewhere()
            rows = self._read(statement)
        if not rows:
            raise UnknownTraceError(
                f"No trace in {self.name} has an id that begins with {wanted[:64]!r}; {hint}"
            )
        if len(rows) > 1 and rows[0][0] != wanted:
            found = ", ".join(row[0] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise UsageError(
                f"Several traces have an id that begins with {wanted!r}: {found}; give more of it."
            )
        try:
            return read_document(rows[0][1])
        except DamagedTraceError as error:
            raise UnreadableTraceError(
                f"The trace {rows[0][0]} is damaged: its document is not a trace{error}."
            ) from None

    def find(self, prefix: str, owner: str | None = None) -> Trace | None:
        """The trace that `get` finds. None if there is no such trace or there are several."""
        try:
            return self.get(prefix, owner)
        except UsageError:
            return None

    def page(self, filters: TraceFilters, cursor: str | None = None, limit: int = 50) -> TracePage:
        """At most `limit` traces that pass the filters, from `cursor` on. Traces that are added between two calls do
        not shift the pages. If a filter has no index, one page reads at most `MAX_SCANNED` traces, so it may have fewer
        than `limit` although more traces pass.

        Raises:
            UsageError: the cursor was not written by Podium, or the limit is not from 1 to 200.
        """
        statements = SelectBuilder(filters)
        rows = self._read(statements.page(cursor, limit))
        page_rows = rows[:limit]
        summaries = [read_summary(row) for row in page_rows]
        last = _key_of_first(page_rows[-1:]) if len(rows) > limit else None
        if last is None and (scan := statements.end_of_scan(cursor)) is not None:
            last = _key_of_first(self._read(scan))
            if last is not None and page_rows:  # The scan ends earlier now, if traces were added since.
                last = min(last, (page_rows[-1][1], page_rows[-1][0]))
        total: int | None = None
        if cursor is None and last is None:
            total = len(rows)
        elif cursor is None and len(rows) > limit:
            ((total,),) = self._read(statements.count())
        return TracePage(
            traces=tuple(summary for summary in summaries if summary is not None),
            next=None if last is None else write_cursor(*last),
            total=total,
            damaged=summaries.count(None),
        )

    def list(
        self, filters: TraceFilters = ALL_TRACES, *, limit: int | None = None
    ) -> tuple[TraceSummary, ...]:
        """At most `limit` summaries of traces that pass the filters, newest first, from as many pages as it takes."""
        listed: list[TraceSummary] = []
        self.damaged, cursor, more = 0, None, True
        while more and len(listed) != limit:
            left = MAX_PAGE if limit is None else min(MAX_PAGE, limit - len(listed))
            page = self.page(filters, cursor, left)
            listed += page.traces
            self.damaged += page.damaged
            cursor, more = page.next, page.next is not None
        return tuple(listed)

    def iterate(self, filters: TraceFilters = ALL_TRACES) -> Iterator[Trace]:
        """The traces that pass the filters, oldest first. Damaged traces are left out."""
        return (trace for trace, _ in self._documents(filters))

    def export(self, filters: TraceFilters = ALL_TRACES) -> Iterator[str]:
        """What `iterate` finds, each as one line of JSON without the line break."""
        return (document for _, document in self._documents(filters))

    def newest(self, count: int, filters: TraceFilters = ALL_TRACES) -> tuple[Trace, ...]:
        """The newest traces. Damaged rows among the newest `count` rows are left out."""
        traces = []
        for (document,) in self._read(SelectBuilder(filters).newest_documents(count)):
            with suppress(DamagedTraceError):
                traces.append(read_document(document))
        return tuple(traces)

    def with_outcomes(self, planner: str, count: int) -> tuple[Trace, ...]:
        """The newest `count` traces of a planner whose answers were judged right or wrong, oldest first."""
        right = self.newest(count, TraceFilters(planner=planner, outcome="right"))
        wrong = self.newest(count, TraceFilters(planner=planner, outcome="wrong"))
        return tuple(sorted((*right, *wrong), key=lambda trace: (trace.started_at, trace.id))[-count:])

    def spend(self, query: SpendQuery) -> SpendReport:
        """What was spent in the days of `query`."""
        return SpendReport.read(query, self._read(query.sums()), self._read(query.outcomes()))

    def delete(self, id: str, owner: str | None = None, status: TraceStatus | None = None) -> bool:
        """Delete the trace with exactly this id and, if given, this owner and status. Returns False if there is none.
        If several calls in any processes delete one trace, only one of them gets True."""
        self._queue.wait(_READ_AFTER_WRITE_S)
        return self._rows.delete(id, owner, status)

    def set_outcome(self, prefix: str, outcome: Outcome | None, owner: str | None = None) -> Trace:
        """Give the trace that `get` finds this outcome, and return the trace. None removes the outcome.

        Raises:
            UnknownTraceError, UnreadableTraceError, UsageError: see `get`.
        """
        trace = self.get(prefix, owner).model_copy(update={"outcome": outcome})
        if not self._rows.set_outcome(trace, owner):
            raise UnknownTraceError(f"The trace {trace.id} was deleted meanwhile, or is another one now.")
        return trace

    def _read(self, statement: Any) -> Sequence[Sequence[Any]]:
        """The rows of a statement, once the traces that were added so far are written."""
        self._queue.wait(_READ_AFTER_WRITE_S)
        return self.database.execute(statement)

    def _documents(self, filters: TraceFilters) -> Iterator[tuple[Trace, str]]:
        statements, after = SelectBuilder(filters), None
        self.damaged = 0
        while rows := self._read(statements.documents(after, _BATCH)):
            for started, id_, document in rows:
                after = (started, id_)
                try:
                    trace = read_document(document)
                except DamagedTraceError as error:
                    self.damaged += 1
                    _LOG.warning("The damaged trace %s is left out: not a trace%s.", id_, error)
                else:
                    yield trace, document


def _key_of_first(rows: Sequence[Sequence[Any]]) -> tuple[float, str] | None:
    """The key (start, id) of the first row, which begins with id and start."""
    if not rows:
        return None
    id_, started = rows[0][:2]
    if not isinstance(started, float | int) or not math.isfinite(started):
        # The row is damaged. Both databases sort NULL below all numbers, and any other value above them.
        started = -_BEYOND if started is None else _BEYOND
    return started, id_
