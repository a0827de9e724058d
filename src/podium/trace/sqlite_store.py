"""Traces in an SQLite file: their table, the upgrade of older files, and `SqliteTraceStore`, the store of a server.

`store` has `TraceStore`, for commands that run once; it uses the same table.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from podium.database import SQLiteSchema, connect
from podium.errors import StoreError
from podium.trace.async_store import AsyncTraceStore
from podium.trace.background_table import BACKGROUND_TABLES
from podium.trace.costs import Cost
from podium.trace.model import Trace
from podium.trace.query import Dialect, Statement
from podium.trace.serialization import (
    COLUMNS,
    DamagedTraceError,
    TraceRow,
    plain,
    read_document,
    to_row,
    to_searched,
)
from podium.trace.sqlite_costs import COST_TABLES, add_costs, add_missing_costs, order_costs, sum_costs

WAY_OUT = "give another with --store"
_CACHE = "PRAGMA cache_size = -32768"
"""32 MiB."""
_WAL_PAGES = 4000
"""Pages of 4 KiB that are written before SQLite copies them from the WAL to the file."""
_TOGETHER = 256
"""Rows that one statement inserts."""
_TABLE = """(
    id TEXT PRIMARY KEY, started REAL, planner TEXT, status TEXT, question TEXT,
    calls INTEGER, cost_usd REAL, seconds REAL, document TEXT,
    owner TEXT, workers TEXT DEFAULT '[]', searched TEXT DEFAULT '', outcome TEXT
)"""
"""`workers` is a list in JSON; the whole trace is in `document`, as JSON."""
_INSERT = f"INSERT OR REPLACE INTO traces ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
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


SQLITE = Dialect(
    name="traces",
    costs="costs",
    spent="spent",
    paid="costs.started = traces.started AND costs.trace = traces.id",
    # Without statistics, SQLite may choose a worse index.
    tables={
        None: "traces INDEXED BY listed",
        "outcome": "traces INDEXED BY judged",
        "status": "traces INDEXED BY troubled",
        "owner": "traces INDEXED BY listed_of",
        "planner": "traces INDEXED BY planned",
        "worker": "worked CROSS JOIN traces INDEXED BY listed USING (started, id)",
    },
    mark=lambda number: f"?{number}",
    worker=lambda name, leads: (
        ("worker = {}", name) if leads else ("instr(workers, {}) > 0", json.dumps(name, ensure_ascii=False))
    ),
    contains="instr(searched, {}) > 0",
    workers=json.loads,
    now="((julianday('now') - 2440587.5) * 86400.0)",
    lock="",
    skip_locked="",
)


_JUDGED, _COSTED, _WORKED, _SUMMED = 3, 4, 5, 6
"""The first formats with outcomes, with costs, with the table of workers, and with the sums of costs."""


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Format 1 had no columns for owner, workers and search, format 2 none for outcomes, format 3 no table of costs,
    format 4 none of workers, and format 5 none of the sums of costs.

    The documents stay as they are.
    """
    connection.execute(_CACHE)
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
    if version < _COSTED:
        add_missing_costs(connection)
    elif version < _WORKED:
        order_costs(connection)
    sum_costs(connection)
    connection.execute("DROP INDEX IF EXISTS by_start")
    connection.execute(_WORKED_TABLE)
    connection.execute(
        "INSERT OR IGNORE INTO worked SELECT name.value, started, traces.id FROM traces, json_each(workers) AS name "
        "ORDER BY 1, 2, 3"
    )


_WORKED_TABLE = (
    "CREATE TABLE IF NOT EXISTS worked (worker TEXT, started REAL, id TEXT, PRIMARY KEY (worker, started, id)) "
    "WITHOUT ROWID"
)
_FORM = SQLiteSchema(
    "trace store",
    mark=0x506F4469,  # "PoDi"
    version=_SUMMED,
    tables=(
        f"CREATE TABLE IF NOT EXISTS traces {_TABLE}",
        # Lists read these indexes alone: the table's rows have whole traces, and are hundreds of times as wide.
        f"CREATE INDEX IF NOT EXISTS listed ON traces (started, id, owner, status, {_NARROW}, outcome)",
        f"CREATE INDEX IF NOT EXISTS listed_of ON traces (owner, started, id, status, {_NARROW}, outcome)",
        f"CREATE INDEX IF NOT EXISTS planned ON traces (planner, started, id, owner, status, {_NARROW}, outcome)",
        f"CREATE INDEX IF NOT EXISTS troubled ON traces (status, started, id, owner, {_NARROW}, outcome) "
        "WHERE status <> 'ok'",
        f"CREATE INDEX IF NOT EXISTS judged ON traces (outcome, started, id, owner, status, {_NARROW}) "
        "WHERE outcome IS NOT NULL",
        _WORKED_TABLE,
        "CREATE TRIGGER IF NOT EXISTS worked_deleted AFTER DELETE ON traces BEGIN DELETE FROM worked "
        "WHERE worker IN (SELECT value FROM json_each(iif(json_valid(old.workers), old.workers, '[]'))) "
        "AND started = old.started AND id = old.id; END",
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
    # A batch fits into the cache, and a trace that replaces another fires the triggers of deletions.
    for pragma in (_CACHE, f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}", "PRAGMA recursive_triggers = ON"):
        writer.execute(pragma)
    writer.execute(f"CREATE TEMP TABLE staging {_TABLE[:-1]}, costs TEXT)")
    return writer


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that reads, to a file that is there.

    Raises:
        UsageError: the file cannot be opened, or is not a trace store.
    """
    return _with_damaged_text(_FORM.open_read_only(path))


def connect_reader(path: Path) -> sqlite3.Connection:
    """A further connection to a file that is open."""
    return _with_damaged_text(connect(path))


def _with_damaged_text(connection: sqlite3.Connection) -> sqlite3.Connection:
    """One text that is no UTF-8 must not keep the rows around it from being read."""
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def read_trace(path: Path, id_: str) -> Trace | None:
    """The trace with exactly this id, from a file that another process may be writing; None: it is not there.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a trace store.
        StoreError: the file cannot be read, or the trace is damaged.
    """
    try:
        with closing(open_reader(path)) as reader:
            found = reader.execute("SELECT document FROM traces WHERE id = ?", (plain(id_),)).fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The trace store {path} cannot be read ({error}).") from error
    try:
        return None if found is None else read_document(found[0])
    except DamagedTraceError as error:
        raise StoreError(f"The trace {id_} in {path} is damaged: not a trace{error}.") from None


def insert_traces(writer: sqlite3.Connection, traces: Iterable[Trace]) -> int:
    """Write `traces`, all or none, replacing those with the same ids; returns how many.

    They are staged and then copied in one short transaction, so that a slow source never locks the file.
    """
    count = 0
    stage = f"INSERT OR REPLACE INTO staging VALUES ({', '.join('?' * len(TraceRow._fields))})"
    try:
        for row in map(to_row, traces):
            writer.execute(stage, (*_values(row), json.dumps(row.costs, ensure_ascii=False)))
            count += 1
        if count:
            insert_rows(writer, map(_staged, writer.execute("SELECT * FROM staging ORDER BY rowid")))
    finally:
        writer.execute("DELETE FROM staging")
    return count


def insert_rows(writer: sqlite3.Connection, rows: Iterable[TraceRow]) -> None:
    """As `insert_traces`, of rows that are there. No two have the same id."""
    remaining = iter(rows)
    with _transaction(writer):
        while some := list(islice(remaining, _TOGETHER)):
            writer.executemany(_INSERT, map(_values, some))
            writer.executemany(
                "INSERT INTO worked VALUES (?, ?, ?)",
                [(name, row.started, row.id) for row in some for name in row.workers],
            )
            add_costs(writer, some)


def _values(row: TraceRow) -> tuple[Any, ...]:
    """Of the columns."""
    return row._replace(workers=json.dumps(row.workers, ensure_ascii=False))[: len(COLUMNS)]  # type: ignore[arg-type]


def _staged(values: Sequence[Any]) -> TraceRow:
    row = TraceRow(*values)
    costs = tuple(Cost(*cost) for cost in json.loads(values[-1]))
    return row._replace(workers=tuple(SQLITE.workers(row.workers)), costs=costs)


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
                reader = connect_reader(self.path)
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
            insert_rows(self._writer, {row.id: row for row in rows}.values())
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
