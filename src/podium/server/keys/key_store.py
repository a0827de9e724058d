"""The store of keys, in SQLite or PostgreSQL.

A key is 256 random bits after a public beginning, by which it is found. Only the key's SHA-256 is stored. A slow hash
would delay every request, and is only needed for secrets that people make up. Each operation is atomic across
processes, since rate limits and budgets over several replicas depend on that. `keys` and `key_budget` decide.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Double,
    Executable,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)

from podium.errors import UsageError
from podium.server.keys.caller import Caller
from podium.store.database import Database, SqlNow, Tables

WINDOW_S = 60.0
"""Seconds of the sliding window for requests a minute."""
_FORM = re.compile(r"(pk-[0-9a-f]{8})-[A-Za-z0-9_-]{43}")
_CALLERS = TypeAdapter(Caller)
NO_DIGEST = bytes(32)
"""The digest that an unknown key is compared with. No known text has this SHA-256."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is stored."""

    caller: Caller
    """The caller that uses the key. Its name and id are set."""
    digest: bytes = field(repr=False)
    """The key's SHA-256."""
    added: datetime
    """The time in UTC."""


@dataclass(frozen=True, slots=True)
class KeySpending:
    """The state of a key's budget in one period over all replicas, in billionths of a dollar."""

    spent: int = 0
    reserved: int = 0
    """What replicas have reserved for calls in flight. Reservations of a killed replica stay, since providers may bill
    its calls."""


_METADATA = MetaData()
_KEYS = Table(
    "podium_keys",
    _METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, unique=True),
    Column("digest", LargeBinary),
    Column("caller", Text),
    Column("added", Double),
    sqlite_with_rowid=False,
)
"""`caller` is the `Caller` in JSON, `added` is in seconds since 1970."""
_REQUESTS = Table(
    "podium_key_requests",
    _METADATA,
    Column("key", Text, primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("at", Double),
    Index("podium_key_requests_by_time", "key", "at"),
    sqlite_with_rowid=False,
)
"""A key has one row for each request that it may make per minute. A request takes a row that was last used over a
minute ago."""
_SPENDING = Table(
    "podium_key_spending",
    _METADATA,
    Column("key", Text, primary_key=True),
    Column("period", Text, primary_key=True),
    Column("spent", BigInteger),
    Column("held", BigInteger),
    sqlite_with_rowid=False,
)
KEY_TABLES = Tables(
    "file of keys",
    application_id=0x506F444B,  # "PoDK"
    version=3,
    metadata=_METADATA,
    way_out="move it away or give another with --store",
    synchronous="NORMAL",  # The file is written before and after each paid call.
)
_K, _R, _S = _KEYS.c, _REQUESTS.c, _SPENDING.c


class KeyStore:
    """Stores keys. `key` is a key's id, `period` a name from `KeyAllowance.period`.

    Args:
        location: a file, or "postgresql://user:password@host/database".
        create: whether a missing file is created with its folders. If not, a missing file is a `UsageError`.
        clock: returns seconds since 1970, for a file.

    Raises:
        UsageError: the location is missing, cannot be opened, or is not of this kind.
        StoreError: raised by each method if the key store cannot be read or written.
    """

    def __init__(
        self, location: str | Path, *, create: bool = True, clock: Callable[[], float] = time.time
    ) -> None:
        if isinstance(location, Path) and not create and not location.exists():
            raise UsageError(
                f"There is no file of keys at {location}; `podium keys add` makes one, or give the server's --store."
            )
        self._database = Database(location, KEY_TABLES, clock=clock)

    async def add(self, key: StoredKey) -> bool:
        """Store a key. Returns False, and changes nothing, if the name or id exists already."""
        caller = key.caller
        row = _KEYS.insert().values(
            id=caller.id,
            name=caller.name,
            digest=key.digest,
            caller=json.dumps(asdict(caller)),
            added=key.added.timestamp(),
        )
        slots = [(caller.id, slot, 0.0) for slot in range(1, 1 + (caller.rpm or 0))]

        def write() -> bool:
            with self._database.transaction() as connection:
                if connection.execute(
                    select(_K.id).where((_K.id == caller.id) | (_K.name == caller.name))
                ).first():
                    return False
                connection.execute(row)
                self._database.insert_rows(connection, _REQUESTS, slots)
            return True

        return await self._database.to_thread(write)

    async def remove(self, name: str) -> bool:
        """Remove a key and its spending. Returns False if there is no key of this name."""

        def write() -> bool:
            with self._database.transaction() as connection:
                id_ = connection.execute(delete(_KEYS).where(_K.name == name).returning(_K.id)).scalar()
                connection.execute(delete(_REQUESTS).where(_R.key == id_))
                connection.execute(delete(_SPENDING).where(_S.key == id_))
            return id_ is not None

        return await self._database.to_thread(write)

    async def has(self, key: str) -> bool:
        """Whether there is a key of this id."""
        return bool(await self._database.run(select(_K.id).where(_K.id == key)))

    async def keys(self) -> tuple[StoredKey, ...]:
        """All keys, the oldest first."""
        return tuple(
            _stored(row) for row in await self._database.run(select(_KEYS).order_by(_K.added, _K.id))
        )

    async def count_request(self, key: str) -> float | None:
        """Count one request now, or return the seconds until the rate limit allows one."""
        unused = or_(_R.at <= SqlNow() - WINDOW_S, _R.at > SqlNow() + WINDOW_S)
        oldest = select(_R.slot).where(_R.key == key, unused).order_by(_R.at).limit(1)
        # A row that another request is taking at the moment is not free.
        slot = oldest.with_for_update(skip_locked=True).scalar_subquery()
        taken = update(_REQUESTS).where(_R.key == key, _R.slot == slot).values(at=SqlNow())
        if await self._database.run(taken.returning(_R.slot)):
            return None
        wait_s = select(func.min(_R.at) + WINDOW_S - SqlNow()).where(
            _R.key == key, _R.at > SqlNow() - WINDOW_S
        )
        ((wait,),) = await self._database.run(wait_s)
        # The wait is None if other requests are taking all rows now, or the key was just removed and has no rows.
        return WINDOW_S if wait is None else max(0.0, float(wait))

    async def reserve(self, key: str, period: str, limit: int, amount: int) -> KeySpending | None:
        """Reserve `amount`. Returns None if that would exceed `limit`, or if the key was removed."""
        fits = literal(amount, BigInteger) <= literal(limit, BigInteger)
        reserved = self._insert_spending(key, period, spent=0, held=amount, where=fits).on_conflict_do_update(
            index_elements=[_S.key, _S.period],
            set_={"held": _S.held + amount},
            where=_S.spent + _S.held + amount <= limit,
        )
        return await self._spending(reserved.returning(_S.spent, _S.held))

    async def settle(self, key: str, period: str, paid: int, back: int) -> KeySpending:
        """Add `paid` to what was spent, and release `back` of what was reserved."""
        settled = self._insert_spending(key, period, spent=paid, held=0).on_conflict_do_update(
            index_elements=[_S.key, _S.period],
            set_={"spent": _S.spent + paid, "held": case((_S.held > back, _S.held - back), else_=0)},
        )
        return await self._spending(settled.returning(_S.spent, _S.held)) or KeySpending()

    async def spending(self, key: str, period: str) -> KeySpending:
        """The dollars that were spent, and those that are reserved."""
        statement = select(_S.spent, _S.held).where(_S.key == key, _S.period == period)
        return await self._spending(statement) or KeySpending()

    async def spendings(self, now: datetime) -> tuple[tuple[StoredKey, KeySpending], ...]:
        """All keys, the oldest first, each with its spending in the period at `now` (UTC): 0 without a budget."""
        spendings = []
        for stored in await self.keys():
            allowance, spending = stored.caller.allowance, KeySpending()
            if allowance is not None:
                spending = await self.spending(stored.caller.id or "", allowance.period(now))
            spendings.append((stored, spending))
        return tuple(spendings)

    async def close(self) -> None:
        """Close the file or the connections. Calling twice is fine."""
        self._database.close()

    def _insert_spending(
        self, key: str, period: str, *, spent: int, held: int, where: ColumnElement[bool] | None = None
    ) -> Any:
        """The statement that inserts a key's spending, if the key exists."""
        values = [literal(period, Text), literal(spent, BigInteger), literal(held, BigInteger)]
        row = select(_K.id, *values).where(_K.id == key)
        names = ["key", "period", "spent", "held"]
        return self._database.insert(_SPENDING).from_select(names, row if where is None else row.where(where))

    async def _spending(self, statement: Executable) -> KeySpending | None:
        rows = await self._database.run(statement)
        return KeySpending(*rows[0]) if rows else None


def _stored(row: Sequence[Any]) -> StoredKey:
    _, _, digest, caller, added = row
    return StoredKey(_CALLERS.validate_python(json.loads(caller)), digest, datetime.fromtimestamp(added, UTC))


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key. It cannot be read again later."""

    id: str
    """The key's public beginning, such as "pk-3f9a1c2e"."""
    text: str = field(repr=False)
    """The whole key."""

    @classmethod
    def generate(cls) -> NewKey:
        """Make a key of 256 bits of the system's randomness."""
        public = f"pk-{secrets.token_hex(4)}"
        return cls(public, f"{public}-{secrets.token_urlsafe(32)}")

    @property
    def digest(self) -> bytes:
        """The SHA-256 that is stored."""
        return _digest(self.text)


def public_part(text: str) -> str:
    """The public beginning of a key. It is "" if the text does not have the form of a key."""
    match = _FORM.fullmatch(text)
    return match[1] if match else ""


def matches_digest(text: str, digest: bytes) -> bool:
    """Whether `text` is the key with this digest, compared in constant time."""
    return hmac.compare_digest(_digest(text), digest)


def bearer_token(authorization: str | None) -> str:
    """The key in an Authorization header. It is "" if there is none."""
    scheme, _, text = (authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
