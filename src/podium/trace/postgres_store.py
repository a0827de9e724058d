"""The traces of any number of servers in one PostgreSQL database. Needs the package asyncpg (extra `postgres`).

The connections belong to an event loop in a thread of its own, so that the store may be used from any event loop. A
read takes one of a few connections; writes go through the `WriteQueue`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, get_args

from podium.database import data_folder
from podium.errors import StoreError, UsageError
from podium.per_loop import LoopThread
from podium.trace.async_store import AsyncTraceStore
from podium.trace.background_table import BACKGROUND_TABLES
from podium.trace.costs import SUMS_OF_COSTS
from podium.trace.postgres_connection import PostgresAddress
from podium.trace.postgres_costs import COST_TABLES, add_missing_costs, replace_costs
from podium.trace.query import Dialect, Leading, Statement
from podium.trace.serialization import COLUMNS, TraceRow

if TYPE_CHECKING:
    import asyncpg

_VERSION = 3
_LOCK = 0x506F4469
"""The advisory lock for creating the tables, so that two servers do not create them at once."""
_CONNECT_S = 10.0
_STATEMENT_S = 30.0
_CONNECTIONS = 8
_ADDED = (
    "ALTER TABLE podium_traces ADD COLUMN IF NOT EXISTS outcome text",
    "CREATE INDEX IF NOT EXISTS podium_traces_judged ON podium_traces (outcome, started, id) WHERE outcome IS NOT NULL",
    *COST_TABLES,
)
"""What the formats after the first added: outcomes, and costs."""
_TABLES = (
    # The search for the beginning of an id must compare code points. Only the collation "C" guarantees this.
    """CREATE TABLE IF NOT EXISTS podium_traces (
        id text COLLATE "C" PRIMARY KEY, started double precision NOT NULL, planner text NOT NULL,
        status text NOT NULL, question text NOT NULL, calls integer NOT NULL, cost_usd double precision NOT NULL,
        seconds double precision NOT NULL, document text NOT NULL, owner text, workers text[] NOT NULL,
        searched text NOT NULL
    )""",
    *_ADDED,
    # Keep the long documents, and no other column, out of the rows that lists and searches read.
    "ALTER TABLE podium_traces SET (toast_tuple_target = 1024)",
    "ALTER TABLE podium_traces ALTER searched SET STORAGE MAIN, ALTER question SET STORAGE MAIN, "
    "ALTER workers SET STORAGE MAIN",
    "CREATE INDEX IF NOT EXISTS podium_traces_listed ON podium_traces (started, id)",
    "CREATE INDEX IF NOT EXISTS podium_traces_listed_of ON podium_traces (owner, started, id)",
    "CREATE INDEX IF NOT EXISTS podium_traces_planner ON podium_traces (planner, started, id)",
    "CREATE INDEX IF NOT EXISTS podium_traces_status ON podium_traces (status, started, id)",
    "CREATE INDEX IF NOT EXISTS podium_traces_workers ON podium_traces USING gin (workers)",
    "CREATE TABLE IF NOT EXISTS podium_formats (name text PRIMARY KEY, version integer NOT NULL)",
)
_INSERT = (
    f"INSERT INTO podium_traces ({', '.join(COLUMNS)}) "
    f"VALUES ({', '.join(f'${number}' for number in range(1, len(COLUMNS) + 1))}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "id")
)
_DIALECT = Dialect(
    name="podium_traces",
    costs="podium_costs",
    spent=f"(SELECT {SUMS_OF_COSTS} FROM podium_costs GROUP BY day, owner, planner, worker) AS spent",
    paid="podium_costs.trace = podium_traces.id",
    tables=dict.fromkeys([None, *get_args(Leading)], "podium_traces"),
    mark=lambda number: f"${number}",
    worker=lambda name, leads: ("workers @> {}", [name]),
    contains="strpos(searched, {}) > 0",
    workers=tuple,
    now="extract(epoch FROM clock_timestamp())::double precision",
    lock="FOR UPDATE",
    skip_locked="FOR UPDATE SKIP LOCKED",
)
_PERMANENT = ("21", "22", "23", "54")
"""Classes of SQLSTATE for errors in the data itself, which a retry would meet again."""


class PostgresTraceStore(AsyncTraceStore):
    """A database of traces. Its tables are created if they are missing.

    Args:
        url: "postgresql://user:password@host:port/database"; it may also begin with "postgresql+asyncpg://".

    Raises:
        UsageError: the database cannot be reached or used, or asyncpg is missing.
    """

    def __init__(self, url: str, **bounds: Any) -> None:
        self._address = PostgresAddress.read(url)
        self._loop = LoopThread("podium-postgres")
        self._closed = False
        try:
            self._pool = self._loop.call(self._open())
        except BaseException:
            self._loop.close()
            raise
        super().__init__(self._address.shown, _DIALECT, data_folder(), **bounds)

    @property
    def shared(self) -> bool:
        """True: all servers that know the address share it."""
        return True

    async def _open(self) -> asyncpg.Pool:
        try:
            import asyncpg  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError(
                "A store in PostgreSQL needs the package asyncpg; install it: pip install 'podium-conductor[postgres]'."
            ) from None
        try:
            pool = await asyncpg.create_pool(
                self._address.dsn,
                min_size=1,
                max_size=_CONNECTIONS,
                timeout=_CONNECT_S,
                command_timeout=_STATEMENT_S,
                server_settings={"application_name": "podium"},
            )
        except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise UsageError(self._sentence("opened", error)) from None
        try:
            async with pool.acquire() as connection, connection.transaction():
                await self._make(connection)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            pool.terminate()
            raise UsageError(self._sentence("used", error)) from None
        except BaseException:
            pool.terminate()
            raise
        return pool

    async def _make(self, connection: Any) -> None:
        """Create the tables. Servers that start together do so one after the other."""
        encoding = await connection.fetchval("SHOW server_encoding")
        if encoding != "UTF8":
            raise UsageError(
                f"The database {self._address.shown} has the encoding {encoding}, which cannot hold every text; "
                "make one with ENCODING 'UTF8'."
            )
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        version = None
        if await connection.fetchval("SELECT to_regclass('podium_formats')") is not None:
            version = await connection.fetchval("SELECT version FROM podium_formats WHERE name = 'traces'")
        if version is not None and version > _VERSION:
            raise UsageError(
                f"The traces in {self._address.shown} were written by a newer Podium (format {version}, this one knows "
                f"{_VERSION}); update Podium, or give another database."
            )
        if version != _VERSION:
            for statement in _TABLES if version is None else _ADDED:
                await connection.execute(statement)
            if version is not None:
                await add_missing_costs(connection)
            await connection.execute(
                "INSERT INTO podium_formats VALUES ('traces', $1) "
                "ON CONFLICT (name) DO UPDATE SET version = excluded.version",
                _VERSION,
            )
        if await connection.fetchval("SELECT to_regclass('podium_background')") is None:
            for statement in BACKGROUND_TABLES:
                await connection.execute(statement)

    async def _rows(self, statement: Statement) -> Sequence[Sequence[Any]]:
        if self._closed:
            raise RuntimeError(f"the trace store {self.place} is closed")
        return await self._loop.run(self._fetch(statement))

    async def _fetch(self, statement: Statement) -> Sequence[Sequence[Any]]:
        text, values = statement
        async with self._connected("read") as connection:
            rows: Sequence[Sequence[Any]] = await connection.fetch(text, *values)
        return rows

    def _write(self, rows: Sequence[TraceRow]) -> None:
        self._loop.call(self._insert(rows))

    async def _insert(self, rows: Sequence[TraceRow]) -> None:
        async with (
            asyncio.timeout(2 * _STATEMENT_S),
            self._connected("written") as connection,
            connection.transaction(),
        ):
            await connection.executemany(_INSERT, [row[: len(COLUMNS)] for row in rows])
            await replace_costs(connection, rows)

    @asynccontextmanager
    async def _connected(self, done: str) -> AsyncIterator[Any]:
        """Lend a connection, and turn its errors into a `StoreError`."""
        import asyncpg  # noqa: PLC0415 - an extra

        broken = (
            OSError,
            TimeoutError,
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
        )
        try:
            async with self._pool.acquire(timeout=_CONNECT_S) as connection:
                try:
                    yield connection
                except asyncpg.InternalClientError:
                    # The connection broke within a batch and does not know it. Without this line the pool would lend it
                    # again.
                    connection.terminate()
                    raise
        except broken as error:
            sqlstate = getattr(error, "sqlstate", None) or ""
            raise StoreError(
                self._sentence(done, error), retryable=not sqlstate.startswith(_PERMANENT)
            ) from None

    def _sentence(self, done: str, error: BaseException) -> str:
        lines = self._address.scrub(error).strip().splitlines()
        timed_out = "no answer in time" if isinstance(error, TimeoutError) else ""
        reason = lines[0].rstrip(".") if lines else timed_out
        return f"The trace store {self._address.shown} cannot be {done} ({reason or type(error).__name__})."

    def _disconnect(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.call(self._close_pool())
            self._loop.close()

    async def _close_pool(self) -> None:
        try:
            async with asyncio.timeout(_CONNECT_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
