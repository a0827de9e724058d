"""Tables in an SQLite file or a PostgreSQL database: one schema, one set of statements, one class that runs them.

The stores of traces and of keys use this class. Its methods block, unless they are async. SQLite files have an
application id and a mode (`podium.files.sqlite`). PostgreSQL needs the package psycopg (extra `postgres`).
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from sqlalchemy import Connection, Dialect, Double, Executable, MetaData, Row, Table, create_engine, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import QueuePool
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.functions import FunctionElement

from podium.errors import StoreError, UsageError
from podium.files.sqlite import SQLiteSchema, connect

T = TypeVar("T")
CONNECT_S = 10
_STATEMENT_S = 30.0
_CONNECTIONS = 8
_CACHE = "PRAGMA cache_size = -32768"
"""SQLite's page cache: 32 MiB, given in KiB as a negative number."""
_WAL_PAGES = 4000
"""Pages of 4 KiB that are written before SQLite copies them from the WAL to the file."""
_ADDRESS_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_HIDDEN = "***"
_PERMANENT_SQLSTATES = ("21", "22", "23", "54")
"""The first digits of SQLSTATE for errors in the data itself, which a retry would meet again."""


class SqlNow(FunctionElement[float]):
    """Seconds since 1970, by the clock of the database."""

    type = Double()
    inherit_cache = True


class SqlContains(FunctionElement[bool]):
    """`SqlContains(column, text)`: whether the text is part of the column, letter by letter."""

    inherit_cache = True


@compiles(SqlNow, "sqlite")
def _now_in_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    return "(SELECT podium_now())"  # A subquery is evaluated once.


@compiles(SqlNow, "postgresql")
def _now_in_postgresql(element: Any, compiler: Any, **options: Any) -> str:
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(SqlContains, "sqlite")
def _contains_in_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    return f"(instr({compiler.process(element.clauses, **options)}) > 0)"


@compiles(SqlContains, "postgresql")
def _contains_in_postgresql(element: Any, compiler: Any, **options: Any) -> str:
    return f"(strpos({compiler.process(element.clauses, **options)}) > 0)"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a PostgreSQL database is. No message shows its password."""

    display: str
    """The address for messages, without user and password."""
    dsn: str = field(repr=False)
    """The address for the driver, with the password."""
    secrets: tuple[str, ...] = field(repr=False, default=())

    @classmethod
    def read(cls, text: str) -> Self:
        """The address in `text`.

        Raises:
            UsageError: the text is not an address. The message does not repeat it, since it may have a password.
        """
        scheme, _, rest = text.strip().partition("://")
        if scheme not in ("postgresql", "postgres"):
            raise UsageError(f"{scheme[:40]}:// is not a trace store; give a file, or {_ADDRESS_FORM}.")
        dsn = f"postgresql://{rest}"
        try:
            parts = urlsplit(dsn)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", None
            parts = urlsplit("")
        # An unescaped / ? # or @ in the password ends the password early, and its rest looks like a path.
        if not host or "@" in parts.path + parts.query + parts.fragment or not parts.path.strip("/"):
            raise UsageError(
                f"The address of the store cannot be read; write {_ADDRESS_FORM}, and in the password %40 for @, "
                "%2F for /, %3A for :, %3F for ?, %23 for # and %25 for %."
            )
        secrets = {parts.password or ""}
        secrets |= {value for name, value in parse_qsl(parts.query) if "password" in name}
        secrets |= {unquote(secret) for secret in secrets}
        server = host if port is None else f"{host}:{port}"
        return cls(
            f"postgresql://{server}{parts.path}", dsn, tuple(sorted(secrets - {""}, key=len, reverse=True))
        )

    def scrub(self, text: object) -> str:
        """The text without the password."""
        scrubbed = str(text)
        for secret in self.secrets:
            scrubbed = scrubbed.replace(secret, _HIDDEN)
        return scrubbed


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables that are one file, or a part of one database."""

    noun: str
    """What messages call these tables, such as "trace store"."""
    application_id: int
    """As in `SQLiteSchema`. In a database, the number of the advisory lock for writing and for making tables."""
    version: int
    """Any other version is refused."""
    metadata: MetaData
    way_out: str
    """What messages tell the user to do about a store that cannot be used, such as "give another with --store"."""
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """How safely SQLite writes, as `SQLiteSchema.synchronous` says."""

    @property
    def file(self) -> SQLiteSchema:
        """The schema of these tables in an SQLite file."""
        statements = tuple(self.statements(sqlite.dialect()))
        return SQLiteSchema(
            self.noun,
            self.application_id,
            self.version,
            statements,
            self.way_out,
            synchronous=self.synchronous,
        )

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """The statements that make the missing tables and indexes."""
        for table in self.metadata.sorted_tables:
            yield str(CreateTable(table, if_not_exists=True).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                if index.info.get("dialect", dialect.name) != dialect.name:
                    continue
                yield str(CreateIndex(index, if_not_exists=True).compile(dialect=dialect))


class Database:
    """An open file or database with tables, which are made if they are missing. Any thread and event loop may use it.

    Args:
        location: an SQLite file, or "postgresql://user:password@host:port/database".
        clock: returns seconds since 1970, for `SqlNow` in a file.
        read_only: whether an existing file is only read, as one that nobody may write.

    Raises:
        UsageError: the location cannot be opened or used, or psycopg is missing. The message never repeats a password.
    """

    def __init__(
        self,
        location: str | Path,
        tables: Tables,
        *,
        clock: Callable[[], float] = time.time,
        read_only: bool = False,
    ) -> None:
        self._tables, self._clock, self._read_only = tables, clock, read_only
        self.postgres = PostgresAddress.read(str(location)) if "://" in str(location) else None
        self.path = None if self.postgres else Path(location)
        self.display_name = str(self.path) if self.postgres is None else self.postgres.display
        self._threads = ThreadPoolExecutor(_CONNECTIONS, "podium-store")
        if self.postgres is not None and find_spec("psycopg") is None:
            raise UsageError(
                f"A {tables.noun} in PostgreSQL needs the package psycopg; install it: "
                "pip install 'podium-conductor[postgres]'."
            )
        # Writing has a separate connection, since SQLite empties a connection's cache when another has written.
        self._writers, self._readers = self._engine(1), self._engine(_CONNECTIONS)
        try:
            if self.postgres is None:
                self._writers.connect().close()
            else:
                self._create_tables(self.postgres)
        except BaseException:
            self.close()
            raise

    def _engine(self, connections: int) -> Any:
        pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": connections, "max_overflow": 0}
        if self.path is not None:
            make = partial(self._connect_file, self.path, creates=connections == 1)
            return create_engine("sqlite://", creator=make, isolation_level="AUTOCOMMIT", **pool)
        return create_engine(
            "postgresql+psycopg://",
            creator=self._connect_server,
            isolation_level="AUTOCOMMIT",
            paramstyle="format",
            use_native_hstore=False,
            pool_pre_ping=True,
            **pool,
        )

    def _connect_file(self, path: Path, *, creates: bool) -> sqlite3.Connection:
        if self._read_only:
            connection = self._tables.file.open(path, read_only=True)
        else:
            connection = self._tables.file.open(path) if creates else connect(path)
        connection.execute(_CACHE)
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA synchronous = {self._tables.synchronous}")
        connection.execute("PRAGMA secure_delete = ON")  # Deleted text must not stay readable in the file.
        connection.create_function("podium_now", 0, self._clock)
        # A text that is no UTF-8 must not prevent other rows from being read.
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        return connection

    def _connect_server(self) -> Any:
        import psycopg  # noqa: PLC0415 - an extra

        assert self.postgres is not None
        connection = psycopg.connect(
            self.postgres.dsn, autocommit=True, application_name="podium", connect_timeout=CONNECT_S,
            prepare_threshold=None,  # A query plan that suits one worker's name may be bad for another's.
            keepalives_idle=10, keepalives_interval=5, keepalives_count=3, tcp_user_timeout=int(1000 * _STATEMENT_S),
        )  # fmt: skip
        limit = int(1000 * _STATEMENT_S)
        connection.execute(
            f"SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}"
        )
        return connection

    def _create_tables(self, address: PostgresAddress) -> None:
        """Create the tables of PostgreSQL. Servers that start together do so one after the other."""
        try:
            with self._writers.connect() as connection:
                encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
                if encoding != "UTF8":
                    raise UsageError(
                        f"The database {address.display} has the encoding {encoding}, which cannot hold every text; "
                        "make one with ENCODING 'UTF8'."
                    )
                with self._exclusive(connection):
                    self._create_missing_tables(connection, address)
        except (exc.DBAPIError, OSError) as error:
            raise UsageError(self._error_message("opened", error)) from None

    def _create_missing_tables(self, connection: Connection, address: PostgresAddress) -> None:
        tables, execute = self._tables, connection.exec_driver_sql
        version = None
        if execute("SELECT to_regclass('podium_formats')").scalar():
            query = "SELECT version FROM podium_formats WHERE name = %s"
            version = execute(query, (tables.noun,)).scalar()
        if version not in (None, tables.version):
            raise UsageError(
                f"The {tables.noun} in {address.display} was written by another version of Podium (format {version}, "
                f"this one knows {tables.version}); {tables.way_out}."
            )
        if version is None:
            execute("CREATE TABLE IF NOT EXISTS podium_formats (name text PRIMARY KEY, version integer)")
            for statement in tables.statements(postgresql.dialect()):  # type: ignore[no-untyped-call]
                execute(statement)
            execute("INSERT INTO podium_formats VALUES (%s, %s)", (tables.noun, tables.version))

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """An INSERT that may have `on_conflict_do_update`, which both databases write alike."""
        return sqlite.insert(table) if self.postgres is None else postgresql.insert(table)

    def insert_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows that have all columns in their order. The driver gets the tuples directly, which is faster."""
        if rows:
            connection.exec_driver_sql(self._inserts[table.name], list(rows))

    @cached_property
    def _inserts(self) -> dict[str, str]:
        tables = self._tables.metadata.sorted_tables
        return {table.name: str(table.insert().compile(dialect=self._writers.dialect)) for table in tables}

    def execute(self, statement: Executable) -> Sequence[Row[*tuple[Any, ...]]]:
        """The rows of a statement, which commits by itself.

        Raises:
            StoreError: the statement cannot be run.
        """
        with self._errors("read"), self._readers.connect() as connection:
            result = connection.execute(statement)
            return result.fetchall() if result.returns_rows else ()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction: all statements of the block take effect, or none. No other transaction on these tables runs
        meanwhile.

        Raises:
            StoreError: a statement cannot be run.
        """
        with self._errors("written"), self._writers.connect() as connection, self._exclusive(connection):
            yield connection

    @contextmanager
    def _exclusive(self, connection: Connection) -> Iterator[None]:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if self.postgres is None else "BEGIN")
        try:
            if self.postgres is not None:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({self._tables.application_id})")
            yield
        except BaseException:
            if not connection.invalidated:
                connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking work in a thread. The work goes on even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._threads, work, *args))

    async def run(self, statement: Executable) -> Sequence[Row[*tuple[Any, ...]]]:
        """Execute a statement in a thread, and return its rows."""
        return await self.to_thread(self.execute, statement)

    def close(self) -> None:
        """Close the connections. Calling twice is fine."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._readers.dispose()
        self._writers.dispose()

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        try:
            yield
        except (exc.DBAPIError, exc.TimeoutError, OSError) as error:
            raise StoreError(self._error_message(done, error), retryable=not _is_permanent(error)) from None

    def _error_message(self, done: str, error: BaseException) -> str:
        reason = str(getattr(error, "orig", None) or error)
        if self.postgres is not None:
            lines = [line for line in self.postgres.scrub(reason).splitlines() if line.strip()]
            reason = "".join(lines[:1]).rstrip(".") or type(error).__name__
        ending = f"; {self._tables.way_out}" if done == "opened" else ""
        return f"The {self._tables.noun} {self.display_name} cannot be {done} ({reason}){ending}."


def _is_permanent(error: BaseException) -> bool:
    if isinstance(error, exc.DataError):  # In SQLite, the document is too large.
        return True
    sqlstate = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    return sqlstate.startswith(_PERMANENT_SQLSTATES)
