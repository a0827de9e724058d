"""Keys in an SQLite file: for one machine, and any number of processes on it.

Each operation is one short transaction, some microseconds on the event loop. The file holds digests, not keys, and only
its owner can read it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podium.database import SQLiteSchema
from podium.errors import StoreError, UsageError
from podium.server.keys.register import Register, Rows

KEYS = SQLiteSchema(
    "file of keys",
    mark=0x506F444B,  # "PoDK"
    version=1,
    tables=(
        "CREATE TABLE IF NOT EXISTS keys (id TEXT PRIMARY KEY, name TEXT UNIQUE, digest BLOB, admin INTEGER, "
        "allow TEXT, deny TEXT, rpm INTEGER, budget INTEGER, span TEXT, added REAL) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS requests ("
        "key TEXT, place INTEGER, at REAL, PRIMARY KEY (key, place)) WITHOUT ROWID",
        "CREATE INDEX IF NOT EXISTS requests_by_time ON requests (key, at)",
        "CREATE TABLE IF NOT EXISTS spending (key TEXT, period TEXT, spent INTEGER, held INTEGER, "
        "PRIMARY KEY (key, period)) WITHOUT ROWID",
    ),
    way_out="move it away or give another with --store",
    synchronous="NORMAL",  # It is written before and after each paid call.
)
_DIALECT = {
    "keys": "keys",
    "requests": "requests",
    "spending": "spending",
    "now": "(SELECT podium_now())",  # A subquery is evaluated once.
    "skip_locked": "",
}


class SqliteRegister(Register):
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
        if not create and not path.exists():
            raise UsageError(
                f"There is no file of keys at {path}; `podium keys add` makes one, or give the server's --store."
            )
        self._file = KEYS.open(path)
        self._file.create_function("podium_now", 0, clock)

    async def close(self) -> None:
        """As `Register.close`."""
        self._file.close()

    async def _rows(self, statement: str, *values: Any) -> list[Any]:
        text = statement.format_map(_DIALECT).replace("$", "?")
        try:
            return self._file.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"The file of keys {self.path} cannot be used ({error}).") from error

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Rows]:
        # Nothing in it awaits anything but this file, so no other coroutine gets between its statements.
        await self._rows("BEGIN IMMEDIATE")
        try:
            yield self._rows
            await self._rows("COMMIT")
        finally:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")

    def _write_names(self, names: tuple[str, ...]) -> str:
        return json.dumps(names)

    def _read_names(self, value: str) -> list[str]:
        names: list[str] = json.loads(value)
        return names

    def _write_time(self, moment: datetime) -> float:
        return moment.timestamp()

    def _read_time(self, value: float) -> datetime:
        return datetime.fromtimestamp(value, UTC)
