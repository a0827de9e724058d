"""Traces in an SQLite file: their table, the upgrade of older files, and `SqliteTraceStore`, the store of a server.

`store` has `TraceStore`, for commands that run once; it uses the same table.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from podium.database import FileForm, connect
from podium.errors import StoreError
from podium.trace.async_store import AsyncTraceStore
from podium.trace.background_table import BACKGROUND_TABLES
from podium.trace.model import Trace
from podium.trace.query import Dialect, Filters, Statement
from podium.trace.serialization import COLUMNS, TraceRow, plain, to_row, to_searched
from podium.trace.sqlite_costs import COST_TABLES, add_costs, add_missing_costs

WAY_OUT = "give another with --store"
_COLUMNS = ", ".join(COLUMNS)
_TABLE = """(
    id TEXT PRIMARY KEY, started REAL, planner TEXT, status TEXT, question TEXT,
    calls INTEGER, cost_usd REAL, seconds REAL, document TEXT,
    owner TEXT, workers TEXT DEFAULT '[]', searched TEXT DEFAULT '', outcome TEXT
)"""
"""`workers` is a list in JSON; the whole trace is in `document`, as JSON."""
_NARROW = "planner, cost_usd, calls, seconds, workers, question, searched"
_UPGRADED = """UPDATE traces SET
    owner = json_extract(document, '$.owner'),
    workers = (
        SELECT json_group_array(name) FROM (
            SELECT coalesce(json_extract(span.value, '$.answered_by'), json_extract(span.value, '$.worker')) AS name
            FROM json_each(traces.document, '$.rounds') AS round, json_each(round.value, '$.spans') AS span
            GROUP BY name ORDER BY min(1000 * round.key + span.key)
        )
    ),
    searched = podium_searched(coalesce(json_extract(document, '$.question.text'), ''))
WHERE json_valid(document)"""


def _indexed(filters: Filters) -> str:
    """The table, and the index to use: without statistics, SQLite may choose a worse one."""
    if filters.owner is not None:
        return "traces INDEXED BY listed_of"
    if filters.outcome not in (None, "none"):
        return "traces INDEXED BY judged"
    return f"traces INDEXED BY {'listed' if filters.status in (None, 'ok') else 'troubled'}"


SQLITE = Dialect(
    name="traces",
    costs="costs",
    table=_indexed,
    mark=lambda number: "?",
    has_worker="instr(workers, {}) > 0",
    worker=lambda name: json.dumps(name, ensure_ascii=False),
    contains="instr(searched, {}) > 0",
    workers=json.loads,
    now="((julianday('now') - 2440587.5) * 86400.0)",
    lock="",
    skip_locked="",
)


_JUDGED = 3
"""The first format with outcomes."""


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Format 1 had no columns for owner, workers and search, format 2 none for outcomes, format 3 no table of costs.

    The documents stay as they are.
    """
    if version == 1:
        for column in ("owner TEXT", "workers TEXT DEFAULT '[]'", "searched TEXT DEFAULT ''"):
            connection.execute(f"ALTER TABLE traces ADD COLUMN {column}")
        connection.create_function("podium_searched", 1, to_searched, deterministic=True)
        connection.execute(_UPGRADED)
    if version < _JUDGED:
        connection.execute("ALTER TABLE traces ADD COLUMN outcome TEXT")
        # These are made again, with the new column.
        for index in ("listed", "listed_of", "troubled"):
            connection.execute(f"DROP INDEX IF EXISTS {index}")
    add_missing_costs(connection)


_FORM = FileForm(
    "trace store",
    mark=0x506F4469,  # "PoDi"
    version=4,
    tables=(
        f"CREATE TABLE IF NOT EXISTS traces {_TABLE}",
        "CREATE INDEX IF NOT EXISTS by_start ON traces (started)",
        # Lists read these indexes alone: the table's rows have whole traces, and are hundreds of times as wide.
        f"CREATE INDEX IF NOT EXISTS listed ON traces (started, id, owner, status, {_NARROW}, outcome)",
        f"CREATE INDEX IF NOT EXISTS listed_of ON traces (owner, started, id, status, {_NARROW}, outcome)",
        f"CREATE INDEX IF NOT EXISTS troubled ON traces (status, started, id, owner, {_NARROW}, outcome) "
        "WHERE status <> 'ok'",
        f"CREATE INDEX IF NOT EXISTS judged ON traces (outcome, started, id, owner, status, {_NARROW}) "
        "WHERE outcome IS NOT NULL",
        *COST_TABLES,
        *BACKGROUND_TABLES,
    ),
    way_out=WAY_OUT,
    upgrade=_upgrade,
)


def open_writer(path: Path) -> sqlite3.Connection:
    """The connection that writes, to a file that is made if it is missing.

    Raises:
        UsageError: the file cannot be opened, or is not a trace store.
    """
    writer = _FORM.open(path)
    writer.execute(f"CREATE TEMP TABLE staging {_TABLE[:-1]}, costs TEXT)")
    return writer


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that reads, to a file that is there.

    Raises:
        UsageError: the file cannot be opened, or is not a trace store.
    """
    return _FORM.open_read_only(path)


def read_trace(path: Path, id_: str) -> Trace | None:
    """The trace with exactly this id, from a file that another process may be writing; None: it is not there.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a trace store.
        StoreError: the file cannot be read.
    """
    try:
        with closing(open_reader(path)) as reader:
            found = reader.execute("SELECT document FROM traces WHERE id = ?", (plain(id_),)).fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The trace store {path} cannot be read ({error}).") from error
    return None if found is None else Trace.model_validate_json(found[0])


def insert_traces(writer: sqlite3.Connection, traces: Iterable[Trace]) -> int:
    """Write `traces`, all or none, replacing those with the same ids; returns how many."""
    return insert_rows(writer, map(to_row, traces))


def insert_rows(writer: sqlite3.Connection, rows: Iterable[TraceRow]) -> int:
    """As `insert_traces`.

    The rows are staged and then copied in one short transaction, so that a slow source never locks the file.
    """
    count = 0
    marks = ", ".join("?" * len(TraceRow._fields))
    try:
        for row in rows:
            workers, costs = (json.dumps(value, ensure_ascii=False) for value in (row.workers, row.costs))
            named = row._replace(workers=workers, costs=costs)  # type: ignore[arg-type]
            writer.execute(f"INSERT OR REPLACE INTO staging ({_COLUMNS}, costs) VALUES ({marks})", named)
            count += 1
        if count:
            with _transaction(writer):
                writer.execute("DELETE FROM main.costs WHERE trace IN (SELECT id FROM staging)")
                writer.execute(
                    f"INSERT OR REPLACE INTO main.traces ({_COLUMNS}) SELECT {_COLUMNS} FROM staging ORDER BY rowid"
                )
                add_costs(writer, "staging", "one.costs")
    finally:
        writer.execute("DELETE FROM staging")
    return count


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements of the block, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class SqliteTraceStore(AsyncTraceStore):
    """A file of traces, made if it is missing; one of an older Podium is brought up to date.

    Args:
        alone: whether no other server keeps its traces in the file.

    Raises:
        UsageError: the file cannot be opened, or is not a trace store.
    """

    def __init__(self, path: Path | str, *, alone: bool = True, **bounds: Any) -> None:
        self.path = Path(path)
        self._alone = alone
        self._writer = open_writer(self.path)
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._closed = False
        super().__init__(str(self.path), SQLITE, self.path.parent, **bounds)

    @property
    def shared(self) -> bool:
        return not self._alone

    async def _rows(self, statement: Statement) -> Sequence[Sequence[Any]]:
        return await asyncio.to_thread(self._fetch, statement)

    def _fetch(self, statement: Statement) -> Sequence[Sequence[Any]]:
        try:
            try:
                reader = self._readers.get_nowait()
            except Empty:
                reader = connect(self.path)
                # A reader also runs `delete`, which must overwrite the deleted trace in the file.
                reader.execute("PRAGMA secure_delete = ON")
            try:
                return reader.execute(*statement).fetchall()
            finally:
                self._readers.put(reader)
                if self._closed:
                    self._disconnect()
        except sqlite3.Error as error:
            raise StoreError(f"The trace store {self.path} cannot be read ({error}).") from error

    def _write(self, rows: Sequence[TraceRow]) -> None:
        try:
            insert_rows(self._writer, rows)
        except sqlite3.Error as error:
            # A `DataError` is a document that is larger than SQLite takes.
            retryable = not isinstance(error, sqlite3.DataError)
            raise StoreError(
                f"The trace store {self.path} cannot be written ({error}).", retryable=retryable
            ) from error

    def _disconnect(self) -> None:
        self._closed = True
        self._writer.close()
        while True:
            try:
                self._readers.get_nowait().close()
            except Empty:
                return
