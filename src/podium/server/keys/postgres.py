"""Keys in PostgreSQL: for replicas on several machines.

Almost every operation is one statement and one round trip, and the database's clock counts for all. The tables are
`podium_keys`, `podium_key_requests` and `podium_key_spending`. A register may be used from several event loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from podium.errors import StoreError, UsageError
from podium.per_loop import PerLoop
from podium.server.keys.register import Register, Rows
from podium.trace.postgres_connection import PostgresAddress

if TYPE_CHECKING:
    import asyncpg

_TABLES = """
CREATE TABLE IF NOT EXISTS podium_keys (
    id text PRIMARY KEY, name text UNIQUE NOT NULL, digest bytea NOT NULL, admin boolean NOT NULL,
    allow text[], deny text[] NOT NULL, rpm integer, budget bigint, span text, added timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS podium_key_requests (
    key text, place integer, at double precision NOT NULL, PRIMARY KEY (key, place)
);
CREATE INDEX IF NOT EXISTS podium_key_requests_by_time ON podium_key_requests (key, at);
CREATE TABLE IF NOT EXISTS podium_key_spending (
    key text, period text, spent bigint NOT NULL, held bigint NOT NULL, PRIMARY KEY (key, period)
);
"""
_LOCK = 0x506F444B
"""The advisory lock for creating tables, so that two replicas do not create them at once."""
_DIALECT = {
    "keys": "podium_keys",
    "requests": "podium_key_requests",
    "spending": "podium_key_spending",
    "now": "extract(epoch FROM statement_timestamp())::double precision",
    # A row that another request is taking at this moment is not free.
    "skip_locked": "FOR UPDATE SKIP LOCKED",
}
_TIMEOUT_S = 10.0
_CONNECTIONS = 4


@dataclass(slots=True)
class _Link:
    """The connections of one event loop."""

    pool: Any
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    open: bool = False


class PostgresRegister(Register):
    """Keys in a PostgreSQL database.

    Args:
        url: like "postgresql+asyncpg://user:password@host/database". The connection is made when first needed.

    Raises:
        UsageError: asyncpg is not installed, or `url` is not such an address.
    """

    def __init__(self, url: str) -> None:
        try:
            import asyncpg  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError(
                "Keys in PostgreSQL need asyncpg: pip install 'podium-conductor[postgres]'."
            ) from None
        self._address = PostgresAddress.read(url)
        self._internal = asyncpg.InternalClientError
        self._failures = (
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
            OSError,
            TimeoutError,
        )
        self._links = PerLoop(self._link)

    async def close(self) -> None:
        """As `Register.close`; other event loops' connections end with them."""
        await self._links.close()

    async def _rows(self, statement: str, *values: Any) -> list[Any]:
        async with self._connection() as connection:
            return list(await connection.fetch(statement.format_map(_DIALECT), *values))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Rows]:
        async with self._connection() as connection, connection.transaction():

            async def rows(statement: str, *values: Any) -> list[Any]:
                return list(await connection.fetch(statement.format_map(_DIALECT), *values))

            yield rows

    def _write_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return names

    def _read_names(self, value: list[str]) -> list[str]:
        return value

    def _write_time(self, moment: datetime) -> datetime:
        return moment

    def _read_time(self, value: datetime) -> datetime:
        return value

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.pool.PoolConnectionProxy[Any]]:
        try:
            link = await self._links.get()
            async with link.opening:
                if not link.open:
                    await link.pool
                    async with link.pool.acquire() as connection, connection.transaction():
                        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
                        await connection.execute(_TABLES)
                    link.open = True
            async with link.pool.acquire() as connection:
                try:
                    yield connection
                except self._internal:
                    # The connection broke within a statement and does not know it: the pool would hand it out again.
                    connection.terminate()
                    raise
        except self._failures as error:
            detail = self._address.scrub(error) or type(error).__name__
            raise StoreError(f"The keys in {self._address.shown} cannot be used ({detail}).") from None

    async def _link(self) -> AsyncGenerator[_Link]:
        import asyncpg  # noqa: PLC0415 - an extra

        link = _Link(
            asyncpg.create_pool(
                self._address.dsn,
                min_size=0,
                max_size=_CONNECTIONS,
                timeout=_TIMEOUT_S,
                command_timeout=_TIMEOUT_S,
                server_settings={"application_name": "podium keys"},
            )
        )
        try:
            yield link
        finally:
            if link.open:
                try:
                    async with asyncio.timeout(_TIMEOUT_S):
                        await link.pool.close()
                except TimeoutError:
                    link.pool.terminate()
