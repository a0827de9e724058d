"""The one table of a response cache: its columns and its SQL.

`cache` decides when each statement runs; each commits by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.database import FileForm
from podium.errors import UsageError
from podium.workers.response_cache.entry import CacheKey

_FORM = FileForm(
    "response cache",
    mark=0x506F4372,  # "PoCr"
    version=1,
    tables=(
        # Small columns first: a list reads no further.
        """CREATE TABLE IF NOT EXISTS replies (
            id INTEGER PRIMARY KEY, key BLOB UNIQUE, worker TEXT, length INTEGER, recorded REAL, usd REAL,
            reply BLOB, request BLOB
        )""",
        "CREATE INDEX IF NOT EXISTS by_worker ON replies (worker)",
    ),
    way_out="give another file",
    # A power cut may lose the last replies; a sync for each would stop every other call on slow disks.
    synchronous="NORMAL",
    shrinks=True,
)
_LATEST = 4000
"""Requests among which similar ones are searched."""
_READ = 5_000_000
"""Characters of them that are read for it."""
_AT_ONCE = 500
"""Replies deleted by one statement, so that others do not wait long behind it."""


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """What the cache keeps of one worker."""

    worker: str
    """The name that it had in the pool that called it."""
    replies: int
    usd: float
    """Dollars that they cost when they were made."""
    oldest: datetime
    """UTC."""
    newest: datetime


def open_table(path: Path, *, read_only: bool, create: bool) -> sqlite3.Connection:
    """The file, made if it is missing and `create`.

    Raises:
        UsageError: it is missing, cannot be opened, or is not ours.
    """
    if (read_only or not create) and not path.is_file():
        raise UsageError(
            f"There is no response cache at {path}; a run that is given one, without replay, makes it."
        )
    return _FORM.open_read_only(path) if read_only else _FORM.open(path)


def find(db: sqlite3.Connection, key: bytes) -> bytes | None:
    """The reply that is kept under `key`."""
    row = db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def insert(db: sqlite3.Connection, cache_key: CacheKey, key: bytes, reply: bytes, usd: float) -> bool:
    """Keep `reply`; False: another process has kept one meanwhile, which stays."""
    now = datetime.now(UTC).timestamp()
    row = (key, cache_key.worker, cache_key.length, now, usd, reply, cache_key.packed)
    done = db.execute(
        "INSERT INTO replies (key, worker, length, recorded, usd, reply, request) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO NOTHING",
        row,
    )
    return done.rowcount == 1


def similar(db: sqlite3.Connection, worker: str, length: int, most: int) -> Iterator[CacheKey]:
    """Of the latest requests to `worker` those whose length is nearest; to all, where it has none.

    As many as `most`, or fewer, if they are long.
    """
    (known,) = db.execute("SELECT EXISTS (SELECT 1 FROM replies WHERE worker = ?)", (worker,)).fetchone()
    where, values = ("WHERE worker = ?", (worker,)) if known else ("", ())
    ids = db.execute(
        f"SELECT id, length FROM (SELECT id, length FROM replies {where} ORDER BY id DESC LIMIT {_LATEST}) "
        "ORDER BY abs(length - ?), id DESC LIMIT ?",
        (*values, length, most),
    ).fetchall()
    read = 0
    for id_, letters in ids:
        if read > _READ:
            return
        read += letters
        row = db.execute("SELECT worker, request FROM replies WHERE id = ?", (id_,)).fetchone()
        if row is not None:
            yield CacheKey.unpacked(*row)


def count(db: sqlite3.Connection) -> int:
    """Replies that are kept."""
    (number,) = db.execute("SELECT count(*) FROM replies").fetchone()
    return int(number)


def summaries(db: sqlite3.Connection) -> tuple[WorkerSummary, ...]:
    """By worker, in order of their names."""
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
    """Delete what was kept before `older_than`, or all; returns how many, and gives their room back to the disk."""
    where, values = ("", ()) if older_than is None else ("WHERE recorded < ?", (older_than.timestamp(),))
    deleted = 0
    while some := db.execute(
        f"DELETE FROM replies WHERE id IN (SELECT id FROM replies {where} LIMIT {_AT_ONCE})", values
    ).rowcount:
        deleted += some
    # Without the rows of its result a vacuum stops after the first page.
    while db.execute("PRAGMA freelist_count").fetchone()[0]:
        db.execute(f"PRAGMA incremental_vacuum({_AT_ONCE})").fetchall()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return deleted
