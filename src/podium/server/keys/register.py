"""Keys as they are stored: the secret, what is kept of it, and the register that stores it, in SQLite or PostgreSQL.

A key is 256 random bits behind a public beginning by which it is found. Only its SHA-256 is kept: a slow hash protects
secrets that people make up, and would delay every request. Each operation of a register is atomic across processes;
rate limits and budgets over several replicas depend on that. `keys` and `key_budget` make the decisions.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from podium.server.keys.caller import Caller, KeyAllowance

WINDOW_S = 60.0
"""Seconds of the sliding window in which requests a minute are counted."""
_FORM = re.compile(r"(pk-[0-9a-f]{8})-[A-Za-z0-9_-]{43}")
NO_DIGEST = bytes(32)
"""The digest that an unknown key is compared with. No known text has this SHA-256."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is stored."""

    caller: Caller
    """The caller that uses it; name and id are set."""
    digest: bytes = field(repr=False)
    """The key's SHA-256."""
    added: datetime
    """UTC."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The state of a key's budget in one period over all replicas, in billionths of a dollar."""

    spent: int = 0
    reserved: int = 0
    """Reserved by replicas for calls in flight. What a killed replica had reserved stays so: its providers may bill
    it."""


_ADD = """
INSERT INTO {keys} (id, name, digest, admin, allow, deny, rpm, budget, span, added)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING id"""
# A key has as many rows as it may make requests a minute. A request takes a row that was last used over a minute ago.
_ADD_PLACES = """
INSERT INTO {requests} (key, place, at)
WITH RECURSIVE places(place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < CAST($2 AS integer))
SELECT $1, place, 0 FROM places"""
_KEYS = "SELECT id, name, digest, admin, allow, deny, rpm, budget, span, added FROM {keys} ORDER BY added, id"
_REQUEST = f"""
UPDATE {{requests}} SET at = {{now}} WHERE key = $1 AND place = (
    SELECT place FROM {{requests}}
    WHERE key = $1 AND (at <= {{now}} - {WINDOW_S} OR at > {{now}} + {WINDOW_S}) ORDER BY at LIMIT 1 {{skip_locked}}
) RETURNING place"""
_WAIT = (
    f"SELECT min(at) + {WINDOW_S} - {{now}} FROM {{requests}} WHERE key = $1 AND at > {{now}} - {WINDOW_S}"
)
_RESERVE = """
INSERT INTO {spending} AS s (key, period, spent, held)
SELECT id, $2, 0, CAST($4 AS bigint) FROM {keys} WHERE id = $1 AND CAST($4 AS bigint) <= CAST($3 AS bigint)
ON CONFLICT (key, period) DO UPDATE SET held = s.held + CAST($4 AS bigint)
WHERE s.spent + s.held + CAST($4 AS bigint) <= CAST($3 AS bigint) RETURNING spent, held"""
_SETTLE = """
INSERT INTO {spending} AS s (key, period, spent, held)
SELECT id, $2, CAST($3 AS bigint), 0 FROM {keys} WHERE id = $1
ON CONFLICT (key, period) DO UPDATE SET spent = s.spent + CAST($3 AS bigint),
held = CASE WHEN s.held > CAST($4 AS bigint) THEN s.held - CAST($4 AS bigint) ELSE 0 END RETURNING spent, held"""
_SPENDING = "SELECT spent, held FROM {spending} WHERE key = $1 AND period = $2"
Rows = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
"""Runs a statement with its values; returns its rows."""


class Register(ABC):
    """Stores keys. `key` is a key's id, `period` a name from `KeyAllowance.period`.

    The statements are written once, in the SQL that SQLite and PostgreSQL share. In braces stand the names of the
    tables and what differs: {now}, the seconds since 1970; and {skip_locked}.

    Raises:
        StoreError: the register cannot be read or written.
    """

    async def add(self, key: StoredKey) -> bool:
        """Store a key. False: its name or id exists already, and nothing changed."""
        caller, allowance = key.caller, key.caller.allowance
        row = (
            caller.id,
            caller.name,
            key.digest,
            caller.admin,
            None if caller.allow is None else self._write_names(caller.allow),
            self._write_names(caller.deny),
            caller.rpm,
            None if allowance is None else allowance.nano,
            None if allowance is None else allowance.duration,
            self._write_time(key.added),
        )
        async with self._transaction() as rows:
            if not await rows(_ADD, *row):
                return False
            if caller.rpm:
                await rows(_ADD_PLACES, caller.id, caller.rpm)
        return True

    async def remove(self, name: str) -> bool:
        """Remove a key and what it spent. False: there is no key of this name."""
        async with self._transaction() as rows:
            removed = await rows("DELETE FROM {keys} WHERE name = $1 RETURNING id", name)
            for (id_,) in removed:
                await rows("DELETE FROM {requests} WHERE key = $1", id_)
                await rows("DELETE FROM {spending} WHERE key = $1", id_)
        return bool(removed)

    async def keys(self) -> tuple[StoredKey, ...]:
        """All keys, the oldest first."""
        return tuple(self._stored(row) for row in await self._rows(_KEYS))

    async def count_request(self, key: str) -> float | None:
        """Count one request now, or return the seconds until the rate limit allows one."""
        if await self._rows(_REQUEST, key):
            return None
        ((wait,),) = await self._rows(_WAIT, key)
        # None: other requests are taking all rows at this moment, or the key was just removed and has none.
        return WINDOW_S if wait is None else max(0.0, float(wait))

    async def reserve(self, key: str, period: str, limit: int, amount: int) -> Spending | None:
        """Reserve `amount`. None: that would pass `limit`, or the key was removed."""
        rows = await self._rows(_RESERVE, key, period, limit, amount)
        return Spending(*rows[0]) if rows else None

    async def settle(self, key: str, period: str, paid: int, back: int) -> Spending:
        """Add `paid` to what was spent, and release `back` of what was reserved."""
        rows = await self._rows(_SETTLE, key, period, paid, back)
        return Spending(*rows[0]) if rows else Spending()

    async def spending(self, key: str, period: str) -> Spending:
        """What was spent and is reserved."""
        rows = await self._rows(_SPENDING, key, period)
        return Spending(*rows[0]) if rows else Spending()

    async def spendings(self, now: datetime) -> tuple[tuple[StoredKey, Spending], ...]:
        """All keys, the oldest first, each with what it spent in its current period; nothing for one without a budget.

        Args:
            now: in UTC.
        """
        found = []
        for stored in await self.keys():
            allowance, spending = stored.caller.allowance, Spending()
            if allowance is not None:
                spending = await self.spending(stored.caller.id or "", allowance.period(now))
            found.append((stored, spending))
        return tuple(found)

    @abstractmethod
    async def close(self) -> None:
        """Close the file or the connections. Calling twice is fine."""

    @abstractmethod
    async def _rows(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run one statement, which commits by itself; its rows."""

    @abstractmethod
    def _transaction(self) -> AbstractAsyncContextManager[Rows]:
        """A transaction, as a function that runs statements in it."""

    @abstractmethod
    def _write_names(self, names: tuple[str, ...]) -> Any: ...

    @abstractmethod
    def _read_names(self, value: Any) -> Sequence[str]: ...

    @abstractmethod
    def _write_time(self, moment: datetime) -> Any: ...

    @abstractmethod
    def _read_time(self, value: Any) -> datetime: ...

    def _stored(self, row: Sequence[Any]) -> StoredKey:
        id_, name, digest, admin, allow, deny, rpm, budget, duration, added = row
        caller = Caller(
            name=name,
            admin=bool(admin),
            allow=None if allow is None else tuple(self._read_names(allow)),
            deny=tuple(self._read_names(deny)),
            id=id_,
            rpm=rpm,
            allowance=None if budget is None else KeyAllowance(budget, duration),
        )
        return StoredKey(caller, digest, self._read_time(added))


@dataclass(frozen=True, slots=True)
class Secret:
    """A new key. It cannot be read again later."""

    id: str
    """Its public beginning, as "pk-3f9a1c2e"."""
    text: str = field(repr=False)
    """The whole key."""

    @classmethod
    def new(cls) -> Secret:
        """256 bits of the system's randomness."""
        public = f"pk-{secrets.token_hex(4)}"
        return cls(public, f"{public}-{secrets.token_urlsafe(32)}")

    @property
    def digest(self) -> bytes:
        """The SHA-256 that is stored."""
        return _digest(self.text)


def public_part(text: str) -> str:
    """The public beginning of a key; "" if the text does not have the form of a key."""
    found = _FORM.fullmatch(text)
    return found[1] if found else ""


def matches_digest(text: str, digest: bytes) -> bool:
    """Whether `text` is the key with this digest, compared in constant time."""
    return hmac.compare_digest(_digest(text), digest)


def bearer_token(authorization: str | None) -> str:
    """The key in an Authorization header; "" if there is none."""
    scheme, _, text = (authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
