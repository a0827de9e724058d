"""The one table of a response cache: its columns and its SQL.

`cache` decides when a statement runs. Each statement commits by itself.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import UsageError
from podium.sqlite_files import SQLiteSchema

_FORM = SQLiteSchema(
    "response cache",
    mark=0x506F4372,  # "PoCr"
    version=1,
    tables=(
        # Small columns come first, since a listing reads no further.
        """CREATE TABLE IF NOT EXISTS replies (
            id INTEGER PRIMARY KEY, key BLOB UNIQUE, worker TEXT, recorded REAL, usd REAL, reply BLOB
        )""",
        "CREATE INDEX IF NOT EXISTS by_worker ON replies (worker)",
    ),
    way_out="give another file",
    # A power cut may lose the last replies, but syncing each reply would delay all calls on slow disks.
    synchronous="NORMAL",
    shrinks=True,
)
_DELETED_AT_ONCE = 500
"""How many replies one statement deletes, so that other processes do not wait long."""


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """The stored replies of one worker, in numbers."""

    worker: str
    """The worker's name in the pool that called it."""
    replies: int
    usd: float
    """The dollars that the replies cost when they were made."""
    oldest: datetime
    """When the oldest reply was stored, in UTC."""
    newest: datetime


def open_table(path: Path, *, read_only: bool, create: bool) -> sqlite3.Connection:
    """Open the file; create it if it is missing and `create` is set.

    Raises:
        UsageError: the file is missing, cannot be opened, or is not a response cache.
    """
    if (read_only or not create) and not path.is_file():
        raise UsageError(
            f"There is no response cache at {path}; a run with this file and without replay creates it."
        )
    return _FORM.open_read_only(path) if read_only else _FORM.open(path)


def find(db: sqlite3.Connection, key: bytes) -> bytes | None:
    """The reply that is stored under `key`. None if there is none."""
    row = db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def insert(db: sqlite3.Connection, worker: str, key: bytes, reply: bytes, usd: float) -> bool:
    """Store `reply`. Returns False if another process has stored a reply meanwhile, which stays."""
    now = datetime.now(UTC).timestamp()
    row = (key, worker, now, usd, reply)
    done = db.execute(
        "INSERT INTO replies (key, worker, recorded, usd, reply) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO NOTHING",
        row,
    )
    return done.rowcount == 1


def count(db: sqlite3.Connection) -> int:
    """Number of stored replies."""
    (number,) = db.execute("SELECT count(*) FROM replies").fetchone()
    return int(number)


def summaries(db: sqlite3.Connection) -> tuple[WorkerSummary, ...]:
    """A summary of each worker, in order of their names."""
    rows = db.execute(
        "SELECT worker, count(*), sum(usd), min(recorded), max(recorded) FROM replies GROUP BY worker ORDER BY worker"
    )
    return tuple(
        WorkerSummary(
            worker, number, usd, datetime.fromtimestamp(oldest, UTC), datetime.fromtimestamp(newest, UTC)
        )
        for worker, number, usd, oldest, newest in rows
    )


def forget(db: sqlite3.Connection, older_than: datetime | None) -> int:
    """Delete the replies that were stored before `older_than`, or all, and shrink the file. Returns their number."""
    where, values = ("", ()) if older_than is None else ("WHERE recorded < ?", (older_than.timestamp(),))
    deleted = 0
    while some := db.execute(
        f"DELETE FROM replies WHERE id IN (SELECT id FROM replies {where} LIMIT {_DELETED_AT_ONCE})", values
    ).rowcount:
        deleted += some
    # The vacuum goes on only while its result rows are fetched.
    while db.execute("PRAGMA freelist_count").fetchone()[0]:
        db.execute(f"PRAGMA incremental_vacuum({_DELETED_AT_ONCE})").fetchall()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return deleted
