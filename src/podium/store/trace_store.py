"""Opens trace stores, and has `TraceStore` for commands that run once.

`TraceStore` is one SQLite file in WAL mode. `add` never waits for the disk, but `flush` and `close` do. A process that
is killed loses at most what it had not flushed, and the file stays whole. Several processes may write to one file.
"""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import BinaryIO, Self

from podium.errors import StoreError, UsageError
from podium.sqlite_files import check_is_address_or_file, check_is_file
from podium.store.async_store import AsyncTraceStore
from podium.store.query import (
    ALL_TRACES,
    TraceFilters,
    TraceStatements,
    TraceSummary,
    read_summary,
)
from podium.store.repository import TraceRepository
from podium.store.schema import STORE, WAY_OUT
from podium.store.write_queue import WriteQueue
from podium.trace.model import Outcome, Trace
from podium.trace.serialization import DamagedTraceError, TraceRow, read_document, storable, to_row

_MAX_WAITING = 10_000
"""How many traces may wait for a file that cannot be written, before `add` raises."""

_OLDEST_FIRST = """
SELECT document FROM traces AS trace JOIN podium_documents ON podium_documents.id = trace.id
ORDER BY trace.started, trace.id"""


def open_store(location: str | Path, *, alone: bool = True) -> AsyncTraceStore:
    """The store at `location`, for a server, with the arguments of `AsyncTraceStore`."""
    check_is_address_or_file(location)
    return AsyncTraceStore(location if "://" in str(location) else Path(location).expanduser(), alone=alone)


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads, to a file that another process may be writing.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a trace store.
    """
    reader = STORE.file.open(path, read_only=True)
    reader.text_factory = lambda text: text.decode("utf-8", "replace")
    return reader


def read_trace(path: Path, id_: str) -> Trace | None:
    """The trace with exactly this id, from a file that another process may be writing. None if the trace is not there.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a trace store.
        StoreError: the file cannot be read, or the trace is damaged.
    """
    try:
        with closing(open_reader(path)) as reader:
            row = reader.execute(
                "SELECT document FROM podium_documents WHERE id = ?", (storable(id_),)
            ).fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The trace store {path} cannot be read ({error}).") from error
    try:
        return None if row is None else read_document(row[0])
    except DamagedTraceError as error:
        raise StoreError(f"The trace {id_} in {path} is damaged: not a trace{error}.") from None


def read_traces(path: Path) -> Iterator[Trace | None]:
    """The traces of a store, oldest first, with one in memory at a time. None for a trace that somebody damaged in the
    file. The file is not changed.

    Raises:
        UsageError: it is not a store of traces, or cannot be read.
    """
    with closing(open_reader(path)) as reader:
        try:
            for (document,) in reader.execute(_OLDEST_FIRST):
                try:
                    trace = read_document(document)
                except DamagedTraceError:
                    trace = None
                yield trace
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {path} cannot be read ({error}); give another.") from None


class TraceStore:
    """Traces by id, newest first, in the SQLite file `path`. Without `create`, a missing file is a `UsageError`, and a
    file that may not be written is only read.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a trace store.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path).expanduser()
        check_is_file(path)
        if not create and not self.path.is_file():
            raise UsageError(f"There is no trace store at {path}; `podium ask` makes one, or {WAY_OUT}.")
        read_only = not create and not os.access(self.path, os.W_OK)
        self._repository = TraceRepository(self.path, read_only=read_only)
        spill = self.path.resolve().parent
        self._queue = WriteQueue(
            self._repository.write, str(self.path), spill=spill, most=_MAX_WAITING, patience_s=0.0
        )
        self.damaged = 0
        """How many traces the latest `list` or `iterate` has left out so far, because their rows are damaged."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing. It replaces a trace with the same id, and is durable after `flush` or `close`.

        Raises:
            StoreError: the file cannot be written, and too many traces wait for it.
        """
        self._queue.put(to_row(trace))

    def add_all(self, traces: Iterable[Trace]) -> int:
        """Write all of `traces`, or none if iterating over them raises. They are durable. Returns their number.

        Raises:
            StoreError: the file cannot be written.
        """
        self.flush()
        count = 0
        # The traces are collected in a temporary file, so that a slow source never locks the store.
        with TemporaryFile() as spool:
            for trace in traces:
                pickle.dump(tuple(to_row(trace)), spool)
                count += 1
            spool.seek(0)
            self._repository.write(_load(spool, count))
        return count

    def flush(self) -> None:
        """Return once everything added before is on disk.

        Raises:
            StoreError: traces could not be written. They are written once that is possible again.
        """
        self._queue.flush()

    def close(self) -> None:
        """Flush, then close the file. Calling this twice is fine.

        Raises:
            StoreError: traces could not be written. The message names their spill files.
        """
        try:
            self._queue.close()
        finally:
            self._repository.database.close()

    def get(self, prefix: str) -> Trace:
        """The trace with the id `prefix`, else the only trace whose id begins with `prefix`.

        Raises:
            UsageError: no trace or several traces have such an id.
        """
        if not prefix:
            raise UsageError("An empty trace id was given; `podium traces list` shows the ids there are.")
        self.flush()
        trace = self._repository.find_by_prefix(prefix)
        if trace is None:
            raise UsageError(
                f"No trace in {self.path} has an id that begins with {storable(prefix)!r}; "
                "`podium traces list` shows the ids there are."
            )
        return trace

    def set_outcome(self, prefix: str, outcome: Outcome | None) -> Trace:
        """Give the trace that `get` finds this outcome, and return the trace. None removes the outcome.

        Raises:
            UsageError: see `get`.
            StoreError: the file cannot be written.
        """
        trace = self.get(prefix).model_copy(update={"outcome": outcome})
        if not self._repository.set_outcome(trace):
            raise UsageError(f"The trace {trace.id} was deleted meanwhile.")
        return trace

    def list(
        self, filters: TraceFilters = ALL_TRACES, *, limit: int | None = None
    ) -> tuple[TraceSummary, ...]:
        """At most `limit` summaries of traces that pass the filters, newest first. Damaged rows are left out."""
        self.flush()
        listed: list[TraceSummary] = []
        self.damaged = 0
        with self._repository.database.stream(TraceStatements(filters).every()) as rows:
            for row in rows:
                if len(listed) == limit:
                    break
                if (summary := read_summary(row)) is None:
                    self.damaged += 1
                else:
                    listed.append(summary)
        return tuple(listed)

    def iterate(self, filters: TraceFilters = ALL_TRACES) -> Iterator[Trace]:
        """The traces that pass the filters, oldest first, one in memory at a time. Damaged traces are left out."""
        self.flush()
        self.damaged = 0
        with self._repository.database.stream(TraceStatements(filters).documents()) as rows:
            for _, _, document in rows:
                try:
                    trace = read_document(document)
                except DamagedTraceError:
                    self.damaged += 1
                else:
                    yield trace


def _load(spool: BinaryIO, count: int) -> Iterator[TraceRow]:
    for _ in range(count):
        yield TraceRow(*pickle.load(spool))
