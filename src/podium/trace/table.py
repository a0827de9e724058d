"""The one table of a trace store: its columns, the mark that tells our file from others, how rows get in.

Below `store`, which owns threads and connections; here is what is said to SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import UsageError
from podium.trace.jsonl import clean, to_json
from podium.trace.model import Trace

LISTED = "id, started, planner, status, question, calls, cost_usd, seconds"
"""The columns that a list needs; the whole trace is in `document`, as JSON."""
_TABLE = """(
    id TEXT PRIMARY KEY, started REAL, planner TEXT, status TEXT, question TEXT,
    calls INTEGER, cost_usd REAL, seconds REAL, document TEXT
)"""
_APPLICATION = 0x506F4469  # "PoDi", in the file's header
_VERSION = 1
_QUESTION_START = 200
_PATIENCE_S = 30.0
"""How long one process waits for another that writes."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection that commits each statement by itself and may be used from any thread."""
    return sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)


def prepare(writer: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; refuse one that is not ours before touching it."""
    # Tables first: another process that makes them at this moment writes the mark in the same transaction.
    (tables,) = writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = writer.execute("PRAGMA application_id").fetchone()
    (version,) = writer.execute("PRAGMA user_version").fetchone()
    if tables and application != _APPLICATION:
        raise UsageError(f"{path} is an SQLite file, but not a trace store; give another with --store.")
    if version > _VERSION:
        raise UsageError(
            f"{path} was written by a newer Podium (format {version}, this one knows {_VERSION}); "
            "update Podium or give another file with --store."
        )
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = FULL")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute(f"CREATE TABLE IF NOT EXISTS traces {_TABLE}")
    writer.execute("CREATE INDEX IF NOT EXISTS by_start ON traces (started)")
    writer.execute(f"PRAGMA application_id = {_APPLICATION}")
    writer.execute(f"PRAGMA user_version = {_VERSION}")
    writer.execute("COMMIT")
    writer.execute(f"CREATE TEMP TABLE staging {_TABLE}")


def insert(writer: sqlite3.Connection, traces: Iterable[Trace]) -> int:
    """Write `traces`, all or none, replacing those with the same ids; returns how many.

    They are staged and then copied in one statement, so that a slow source never holds the file.
    """
    count = 0
    try:
        for trace in traces:
            writer.execute("INSERT OR REPLACE INTO staging VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(trace))
            count += 1
        if count:
            writer.execute("INSERT OR REPLACE INTO main.traces SELECT * FROM staging ORDER BY rowid")
    finally:
        writer.execute("DELETE FROM staging")
    return count


def _row(trace: Trace) -> tuple[str | int | float, ...]:
    return (
        trace.id,
        _seconds(trace.started_at),
        trace.planner,
        trace.status,
        clean(trace.question.text[:_QUESTION_START]),
        trace.calls,
        trace.cost_usd,
        trace.seconds,
        to_json(trace),
    )


def _seconds(moment: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; one without a zone is UTC."""
    at = datetime.fromisoformat(moment)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
