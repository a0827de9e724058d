"""Keys in PostgreSQL: for replicas on several machines.

Each operation is one statement and one round trip, and the database's clock counts for all. The tables are
`podium_keys`, `podium_key_requests` and `podium_key_spending`. A register may be used from several event loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.errors import StoreError, UsageError
from podium.per_loop import PerLoop
from podium.server.keys.caller import Caller, KeyAllowance
from podium.server.keys.register import WINDOW_S, Spending, StoredKey
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
_ADD = "INSERT INTO podium_keys VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING id"
_PLACES = "INSERT INTO podium_key_requests SELECT $1, place, 0 FROM generate_series(1, $2::integer) AS place"
_NOW = "extract(epoch FROM statement_timestamp())::double precision"
# SKIP LOCKED: a row that another request is taking at this moment is not free.
_REQUEST = f"""
WITH free AS (
    SELECT place FROM podium_key_requests
    WHERE key = $1 AND (at <= {_NOW} - {WINDOW_S} OR at > {_NOW} + {WINDOW_S})
    ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED
), came AS (
    UPDATE podium_key_requests AS r SET at = {_NOW} FROM free WHERE r.key = $1 AND r.place = free.place RETURNING r.at
)
SELECT EXISTS (SELECT FROM came),
    (SELECT min(at) FROM podium_key_requests WHERE key = $1 AND at > {_NOW} - {WINDOW_S}) + {WINDOW_S} - {_NOW}"""
_RESERVE = """
INSERT INTO podium_key_spending AS s (key, period, spent, held)
SELECT id, $2, 0, $4::bigint FROM podium_keys WHERE id = $1 AND $4::bigint <= $3::bigint
ON CONFLICT (key, period) DO UPDATE SET held = s.held + $4::bigint WHERE s.spent + s.held + $4::bigint <= $3::bigint
RETURNING spent, held"""
_SETTLE = """
INSERT INTO podium_key_spending AS s (key, period, spent, held)
SELECT id, $2, $3::bigint, 0 FROM podium_keys WHERE id = $1
ON CONFLICT (key, period) DO UPDATE SET spent = s.spent + $3::bigint, held = greatest(0, s.held - $4::bigint)
RETURNING spent, held"""
_SPENDING = "SELECT spent, held FROM podium_key_spending WHERE key = $1 AND period = $2"
_TIMEOUT_S = 10.0
_CONNECTIONS = 4


@dataclass(slots=True)
class _Link:
    """The connections of one event loop."""

    pool: Any
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    open: bool = False


class PostgresRegister:
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
        self._failures = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
        self._links = PerLoop(self._link)

    async def add(self, key: StoredKey) -> bool:
        """As `Register.add`."""
        caller, allowance = key.caller, key.caller.allowance
        async with self._connection() as connection, connection.transaction():
            added = await connection.fetchval(
                _ADD,
                caller.id,
                caller.name,
                key.digest,
                caller.admin,
                caller.allow,
                caller.deny,
                caller.rpm,
                None if allowance is None else allowance.nano,
                None if allowance is None else allowance.duration,
                key.added,
            )
            if added is None:
                return False
            await connection.execute(_PLACES, caller.id, caller.rpm or 0)
        return True

    async def remove(self, name: str) -> bool:
        """As `Register.remove`."""
        async with self._connection() as connection, connection.transaction():
            removed = await connection.fetchval("DELETE FROM podium_keys WHERE name = $1 RETURNING id", name)
            await connection.execute("DELETE FROM podium_key_requests WHERE key = $1", removed)
            await connection.execute("DELETE FROM podium_key_spending WHERE key = $1", removed)
        return removed is not None

    async def keys(self) -> tuple[StoredKey, ...]:
        """As `Register.keys`."""
        return tuple(_stored(row) for row in await self._rows("SELECT * FROM podium_keys ORDER BY added, id"))

    async def count_request(self, key: str) -> float | None:
        """As `Register.count_request`."""
        ((came, wait),) = await self._rows(_REQUEST, key)
        if came:
            return None
        # All rows are being taken at this moment, or the key was just removed and has none.
        return WINDOW_S if wait is None else max(0.0, float(wait))

    async def reserve(self, key: str, period: str, limit: int, amount: int) -> Spending | None:
        """As `Register.reserve`."""
        rows = await self._rows(_RESERVE, key, period, limit, amount)
        return Spending(*rows[0]) if rows else None

    async def settle(self, key: str, period: str, paid: int, back: int) -> Spending:
        """As `Register.settle`."""
        rows = await self._rows(_SETTLE, key, period, paid, back)
        return Spending(*rows[0]) if rows else Spending()

    async def spending(self, key: str, period: str) -> Spending:
        """As `Register.spending`."""
        rows = await self._rows(_SPENDING, key, period)
        return Spending(*rows[0]) if rows else Spending()

    async def close(self) -> None:
        """As `Register.close`; other event loops' connections end with them."""
        await self._links.close()

    async def _rows(self, statement: str, *values: Any) -> list[Any]:
        async with self._connection() as connection:
            return list(await connection.fetch(statement, *values))

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
                yield connection
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


def _stored(row: Any) -> StoredKey:
    caller = Caller(
        name=row["name"],
        admin=row["admin"],
        allow=None if row["allow"] is None else tuple(row["allow"]),
        deny=tuple(row["deny"]),
        id=row["id"],
        rpm=row["rpm"],
        allowance=None if row["budget"] is None else KeyAllowance(row["budget"], row["span"]),
    )
    return StoredKey(caller, row["digest"], row["added"])
