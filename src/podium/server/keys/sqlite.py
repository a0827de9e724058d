"""Keys in an SQLite file: for one machine, and any number of processes on it.

Each operation is one short transaction, some microseconds on the event loop. The file holds digests, not keys, and only
its owner can read it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podium.database import FileForm
from podium.errors import StoreError, UsageError
from podium.server.keys.caller import Caller, KeyAllowance
from podium.server.keys.register import WINDOW_S, Spending, StoredKey

KEYS = FileForm(
    "file of keys",
    mark=0x506F444B,  # "PoDK"
    version=1,
    tables=(
        "CREATE TABLE IF NOT EXISTS keys (id TEXT PRIMARY KEY, name TEXT UNIQUE, digest BLOB, admin INTEGER, "
        "allow TEXT, deny TEXT, rpm INTEGER, budget INTEGER, span TEXT, added REAL) WITHOUT ROWID",
        # One row for each request of a minute; a request takes one that was last used over a minute ago.
        "CREATE TABLE IF NOT EXISTS requests ("
        "key TEXT, place INTEGER, at REAL, PRIMARY KEY (key, place)) WITHOUT ROWID",
        "CREATE INDEX IF NOT EXISTS requests_by_time ON requests (key, at)",
        "CREATE TABLE IF NOT EXISTS spending (key TEXT, period TEXT, spent INTEGER, held INTEGER, "
        "PRIMARY KEY (key, period)) WITHOUT ROWID",
    ),
    way_out="move it away or give another with --store",
    synchronous="NORMAL",  # It is written before and after each paid call.
)
_REQUEST = """
UPDATE requests SET at = :now WHERE key = :key AND place = (
    SELECT place FROM requests WHERE key = :key AND (at <= :now - :window OR at > :now + :window) ORDER BY at LIMIT 1
) RETURNING place"""
_RESERVE = """
INSERT INTO spending (key, period, spent, held)
SELECT id, :period, 0, :amount FROM keys WHERE id = :key AND :amount <= :limit
ON CONFLICT (key, period) DO UPDATE SET held = held + :amount WHERE spent + held + :amount <= :limit
RETURNING spent, held"""
_SETTLE = """
INSERT INTO spending (key, period, spent, held) SELECT id, :period, :paid, 0 FROM keys WHERE id = :key
ON CONFLICT (key, period) DO UPDATE SET spent = spent + :paid, held = max(0, held - :back)
RETURNING spent, held"""


class SqliteRegister:
    """Keys in one file.

    Args:
        path: the file.
        create: whether a missing file is created, with its folders; else it is a `UsageError`.
        clock: seconds since 1970.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a file of keys.
    """

    def __init__(self, path: Path, *, create: bool = True, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        if not create and not path.exists():
            raise UsageError(
                f"There is no file of keys at {path}; `podium keys add` makes one, or give the server's --store."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
        except OSError as error:
            raise UsageError(
                f"The file of keys {path} cannot be opened ({error}); {KEYS.way_out}."
            ) from error
        self._file = KEYS.open(path)

    async def add(self, key: StoredKey) -> bool:
        """As `Register.add`."""
        caller, allowance = key.caller, key.caller.allowance
        row = (
            caller.id,
            caller.name,
            key.digest,
            caller.admin,
            None if caller.allow is None else json.dumps(caller.allow),
            json.dumps(caller.deny),
            caller.rpm,
            None if allowance is None else allowance.nano,
            None if allowance is None else allowance.duration,
            key.added.timestamp(),
        )
        places = ((caller.id, place) for place in range(caller.rpm or 0))
        with self._transaction() as file:
            try:
                file.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                return False
            file.executemany("INSERT INTO requests VALUES (?, ?, 0)", places)
        return True

    async def remove(self, name: str) -> bool:
        """As `Register.remove`."""
        with self._transaction() as file:
            found = file.execute("DELETE FROM keys WHERE name = ? RETURNING id", (name,)).fetchall()
            for table in ("requests", "spending"):
                file.executemany(f"DELETE FROM {table} WHERE key = ?", found)
        return bool(found)

    async def keys(self) -> tuple[StoredKey, ...]:
        """As `Register.keys`."""
        return tuple(_stored(row) for row in self._execute("SELECT * FROM keys ORDER BY added, id"))

    async def count_request(self, key: str) -> float | None:
        """As `Register.count_request`."""
        now = self._clock()
        if self._execute(_REQUEST, {"key": key, "now": now, "window": WINDOW_S}):
            return None
        ((oldest,),) = self._execute("SELECT min(at) FROM requests WHERE key = ?", (key,))
        # A key that was just removed has no rows any more.
        return WINDOW_S if oldest is None else max(0.0, oldest + WINDOW_S - now)

    async def reserve(self, key: str, period: str, limit: int, amount: int) -> Spending | None:
        """As `Register.reserve`."""
        rows = self._execute(_RESERVE, {"key": key, "period": period, "limit": limit, "amount": amount})
        return Spending(*rows[0]) if rows else None

    async def settle(self, key: str, period: str, paid: int, back: int) -> Spending:
        """As `Register.settle`."""
        rows = self._execute(_SETTLE, {"key": key, "period": period, "paid": paid, "back": back})
        return Spending(*rows[0]) if rows else Spending()

    async def spending(self, key: str, period: str) -> Spending:
        """As `Register.spending`."""
        rows = self._execute("SELECT spent, held FROM spending WHERE key = ? AND period = ?", (key, period))
        return Spending(*rows[0]) if rows else Spending()

    async def close(self) -> None:
        """As `Register.close`."""
        self._file.close()

    def _execute(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        try:
            return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._store_error(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield self._file
                self._file.execute("COMMIT")
            finally:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._store_error(error) from error

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        return StoreError(f"The file of keys {self.path} cannot be used ({error}).")


def _stored(row: tuple[Any, ...]) -> StoredKey:
    id_, name, digest, admin, allow, deny, rpm, budget, span, added = row
    caller = Caller(
        name=name,
        admin=bool(admin),
        allow=None if allow is None else tuple(json.loads(allow)),
        deny=tuple(json.loads(deny)),
        id=id_,
        rpm=rpm,
        allowance=None if budget is None else KeyAllowance(budget, span),
    )
    return StoredKey(caller, digest, datetime.fromtimestamp(added, UTC))
