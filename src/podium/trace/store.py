"""The trace stores: the default file, the store that a server opens, and `TraceStore` for commands that run once.

`TraceStore` is one SQLite file in WAL mode, written by one thread. `add` never waits for the disk; `flush` and `close`
do. A process that is killed loses at most what it had not flushed, and the file stays whole. Several processes may
write to one file. It reads and writes no JSONL (see `serialization`), and never changes a trace.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from podium.database import data_folder
from podium.errors import StoreError, UsageError
from podium.trace.async_store import AsyncTraceStore, the_one
from podium.trace.model import Feedback, Trace, TraceStatus
from podium.trace.query import Filters, OutcomeFilter, TraceSummary
from podium.trace.serialization import DamagedTraceError, plain, read_document, to_row
from podium.trace.sqlite_store import (
    SQLITE,
    WAY_OUT,
    SqliteTraceStore,
    connect_reader,
    insert_traces,
    open_writer,
)

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A path object has one slash of "mysql://..." left."""
_BATCH = 256
_MAX_WAITING = 10_000
"""Traces that wait for a file that cannot be written, until `add` raises."""
_RETRY_S = 1.0


def default_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`$PODIUM_STORE`, else `traces.sqlite` in the folder for data.

    Raises:
        UsageError: PODIUM_STORE is the address of a database, which only servers use.
    """
    chosen = environ.get("PODIUM_STORE")
    if chosen and "://" in chosen:
        raise UsageError(
            "PODIUM_STORE is the address of a server's database, and this needs a file; name a file instead."
        )
    if chosen:
        check_is_file(chosen)
    return Path(chosen).expanduser() if chosen else data_folder(environ) / "traces.sqlite"


def open_store(place: str | Path, *, alone: bool = True) -> AsyncTraceStore:
    """The store at `place`: "postgresql://user:password@host/database", or a file, which is made if it is missing.

    Args:
        alone: whether no other server keeps its traces in the file; other servers may always use the database.

    Raises:
        UsageError: it cannot be opened; passwords are never repeated.
    """
    check_is_address_or_file(place)
    if "://" in str(place):
        from podium.trace.postgres_store import PostgresTraceStore  # noqa: PLC0415 - a file needs none of it

        return PostgresTraceStore(str(place))
    return SqliteTraceStore(Path(place).expanduser(), alone=alone)


def check_is_file(path: Path | str) -> None:
    """Refuse the address of a database where only a file can be read.

    Raises:
        UsageError: it does not repeat the address, which may have a password.
    """
    if _ADDRESS.match(str(path)):
        raise UsageError(
            "The store is the address of a database, and this needs a file; name a file instead."
        )


def check_is_address_or_file(place: Path | str) -> None:
    """Refuse an address that has lost a slash, which would be a folder whose name has the password.

    Raises:
        UsageError: it does not repeat the address.
    """
    if _ADDRESS.match(str(place)) and "://" not in str(place):
        raise UsageError("The store's address has one slash too few; write postgresql://USER@HOST/DATABASE.")


class TraceStore:
    """Traces by id, newest first.

    Args:
        path: the SQLite file.
        create: whether a missing file is made. If not, a missing file is a `UsageError`.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a trace store.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path)
        check_is_file(path)
        self._jobs: SimpleQueue[Trace | _Batch | None] = SimpleQueue()
        self._waiting: list[Trace] = []
        self._failure: BaseException | None = None
        """Why the traces that wait cannot be written now; None: they can."""
        self._refused: BaseException | None = None
        """Why a trace could not be written at all, until `flush` or `close` has raised it."""
        self._closed = False
        self.damaged = 0
        """Traces that the latest `list` or `iterate` has left out so far, because their rows are damaged."""
        self._reading = threading.Lock()
        self._reader, self._writer = self._open(create)
        # A daemon: a store that was not closed must not keep the process from ending.
        self._thread = threading.Thread(target=self._write, name="podium-traces", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing; one with the same id is replaced. Durable after `flush` or `close`.

        Raises:
            StoreError: the file cannot be written, and too many traces wait for it.
        """
        self._check_open()
        if self._failure is not None and len(self._waiting) + self._jobs.qsize() >= _MAX_WAITING:
            raise self._failure
        self._jobs.put(trace)

    def add_all(self, traces: Iterable[Trace]) -> int:
        """Write all of `traces` or, if iterating over them raises, none. Returns how many; durable."""
        self._check_open()
        batch = _Batch(traces, Future())
        self._jobs.put(batch)
        return batch.written.result()

    def flush(self) -> None:
        """Return once everything added before is on disk.

        Raises:
            StoreError: traces could not be written. Those that wait are written once that is possible again.
        """
        self.add_all(())
        self._raise_failure()

    def close(self) -> None:
        """Flush, then close the file. Calling twice is fine.

        Raises:
            StoreError: traces could not be written; those that still wait are lost.
        """
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        self._thread.join()
        self._reader.close()
        self._writer.close()
        self._raise_failure()

    def get(self, prefix: str) -> Trace:
        """The trace whose id is `prefix` or, if there is one alone, begins with it.

        Raises:
            UsageError: no trace or several begin with `prefix`.
        """
        wanted = plain(prefix)
        if not wanted:
            raise UsageError("An empty trace id was given; `podium traces list` shows the ids there are.")
        self.flush()
        with self._reading:
            rows = self._reader.execute(*SQLITE.beginning(wanted, None)).fetchall()
        if not rows:
            raise UsageError(
                f"No trace in {self.path} has an id that begins with {wanted!r}; "
                "`podium traces list` shows the ids there are."
            )
        return the_one(rows, wanted)

    def judge(self, prefix: str, outcome: Feedback | None) -> Trace:
        """Give the trace that `get` finds this outcome, and return it. None: take its outcome away.

        Raises:
            UsageError: as `get`.
            StoreError: the file cannot be written.
        """
        trace = self.get(prefix).model_copy(update={"outcome": outcome})
        try:
            with self._reading:
                changed = self._reader.execute(*SQLITE.judge(to_row(trace), None)).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error
        if not changed:
            raise UsageError(f"The trace {trace.id} was deleted meanwhile.")
        return trace

    def list(
        self,
        *,
        limit: int | None = None,
        status: TraceStatus | None = None,
        planner: str | None = None,
        since: datetime | None = None,
        outcome: OutcomeFilter | None = None,
    ) -> tuple[TraceSummary, ...]:
        """Summaries, newest first, at most `limit`, that pass every filter given; without those of damaged rows.

        `since` is inclusive.
        """
        self.flush()
        filters = Filters(status=status, planner=planner, since=since, outcome=outcome)
        found: list[TraceSummary] = []
        self.damaged = 0
        with self._reading:
            for row in self._reader.execute(*SQLITE.every(filters, -1)):
                if len(found) == limit:
                    break
                if (summary := SQLITE.summary(row)) is None:
                    self.damaged += 1
                else:
                    found.append(summary)
        return tuple(found)

    def iterate(
        self,
        *,
        status: TraceStatus | None = None,
        planner: str | None = None,
        since: datetime | None = None,
        outcome: OutcomeFilter | None = None,
    ) -> Iterator[Trace]:
        """Whole traces, oldest first, one in memory at a time; without those that are damaged."""
        self.flush()
        self.damaged = 0
        filters = Filters(status=status, planner=planner, since=since, outcome=outcome)
        with closing(connect_reader(self.path)) as reader:
            for _, _, document in reader.execute(*SQLITE.documents(filters, None, -1)):
                try:
                    trace = read_document(document)
                except DamagedTraceError:
                    self.damaged += 1
                else:
                    yield trace

    def _open(self, create: bool) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        if not create and not self.path.is_file():
            raise UsageError(f"There is no trace store at {self.path}; `podium ask` makes one, or {WAY_OUT}.")
        writer = open_writer(self.path)
        return connect_reader(self.path), writer

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"the trace store {self.path} is closed")

    def _raise_failure(self) -> None:
        refused, self._refused = self._refused, None
        if failure := self._failure or refused:
            raise failure

    def _write(self) -> None:
        """The writer thread. Traces that wait together are written in one transaction, so a burst costs one sync."""
        while True:
            job: Trace | _Batch | _Retry | None
            try:
                job = self._jobs.get(timeout=None if self._failure is None else _RETRY_S)
            except Empty:
                job = _Retry()
            if isinstance(job, Trace):
                self._waiting.append(job)
                if len(self._waiting) < _BATCH and not self._jobs.empty():
                    continue
            if self._waiting:
                self._write_waiting()
            if job is None:
                return
            if isinstance(job, _Batch):
                self._write_batch(job)

    def _write_waiting(self) -> None:
        """Write the traces that wait. A file that is locked or full keeps them waiting."""
        try:
            self._insert(self._waiting)
        except sqlite3.OperationalError as error:
            self._failure = self._explain(error)
        except Exception:  # One of them cannot be written at all; the others can.
            self._write_one_by_one()
        else:
            self._failure, self._waiting = None, []

    def _write_one_by_one(self) -> None:
        while self._waiting:
            try:
                self._insert(self._waiting[:1])
            except sqlite3.OperationalError as error:
                self._failure = self._explain(error)
                return
            except Exception as error:  # raised by `flush`: if this thread died, callers would wait for ever
                self._refused = self._explain(error)
            del self._waiting[0]
        self._failure = None

    def _insert(self, traces: Iterable[Trace]) -> int:
        return insert_traces(self._writer, traces)

    def _write_batch(self, batch: _Batch) -> None:
        try:
            batch.written.set_result(self._insert(batch.traces))
        except BaseException as error:  # whatever iterating raised belongs to the caller, not to this thread
            batch.written.set_exception(self._explain(error))

    def _explain(self, error: BaseException) -> BaseException:
        if isinstance(error, sqlite3.Error):
            return StoreError(f"The trace store {self.path} cannot be written ({error}).")
        return error


class _Retry:
    """Time to try again to write what waits."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Traces to write in one transaction, and the future that gets their number."""

    traces: Iterable[Trace]
    written: Future[int]
