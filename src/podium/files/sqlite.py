"""Podium's SQLite files: how they are opened, and how new ones are created.

An application id in the header distinguishes them from other SQLite files. The callers define the tables and own the
connections. `podium.store.database` opens those whose tables may also lie in PostgreSQL.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from podium.errors import UsageError

T = TypeVar("T")
IN_MEMORY = Path(":memory:")
"""The path that stands for tables in memory, which end with their connection."""
SQLITE_HEADER = b"SQLite format 3\0"
"""The first bytes of every SQLite file that is not empty."""
BUSY_TIMEOUT_S = 30.0
"""How long one process waits for another that writes."""


@dataclass(frozen=True, slots=True)
class SQLiteSchema:
    """One kind of file."""

    noun: str
    """What messages call such a file, as in "trace store"."""
    application_id: int
    """The number in the file's header that only files of this kind have."""
    version: int
    """Version of the tables. A file with another one is refused."""
    tables: tuple[str, ...]
    """Statements that create missing tables and indexes."""
    way_out: str
    """What to do about a file that cannot be used, as in "give another with --store"."""
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """FULL: a commit survives a power cut. NORMAL: it survives the process, and takes a fifth of the time."""
    incremental_vacuum: bool = False
    """Whether `PRAGMA incremental_vacuum` gives deleted pages back to the disk."""

    def open(self, path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        """Open the file. For writing, it and its folders are made if they are missing, the file for its owner alone.
        One that cannot be opened, is of another kind or format, or is empty and only read is a `UsageError`, and not
        changed."""
        with ExitStack() as failing:
            try:
                if path != IN_MEMORY and path.exists() and not (path.is_file() or path.is_dir()):
                    # SQLite would wait for the writer of a pipe, and a device has no end.
                    raise OSError("it is a pipe or a device, and no file")
                if not read_only:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if path != IN_MEMORY and not path.exists():
                        path.touch(0o600)  # SQLite gives the files that it makes beside it the same mode.
                connection = _connect_read_only(path) if read_only else connect(path)
                failing.callback(connection.close)
                self._check(connection, path, may_be_empty=not read_only)
                if not read_only:
                    self._make(connection)
            except (OSError, sqlite3.Error) as error:
                raise UsageError(
                    f"The {self.noun} {path} cannot be opened ({error}); {self.way_out}."
                ) from error
            failing.pop_all()
        return connection

    def _check(self, connection: sqlite3.Connection, path: Path, *, may_be_empty: bool) -> None:
        # Count the tables before reading the id: a process that creates them writes both in one transaction.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if may_be_empty and not tables:
            return
        if application_id != self.application_id:
            raise UsageError(f"{path} is an SQLite file, but not a {self.noun}; {self.way_out}.")
        if version != self.version:
            raise UsageError(
                f"{path} was written by another version of Podium (format {version}, this one knows "
                f"{self.version}); {self.way_out}."
            )

    def _make(self, connection: sqlite3.Connection) -> None:
        if self.incremental_vacuum:  # Before WAL mode, which writes to the file: it must be empty here.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # While another process writes the file's first tables, SQLite refuses this at once, whatever the busy timeout.
        retry_while_busy(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in self.tables:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self.application_id}")
        connection.execute(f"PRAGMA user_version = {self.version}")
        connection.execute("COMMIT")


def connect(path: Path) -> sqlite3.Connection:
    """A connection that commits each statement by itself and may be used from any thread."""
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has locked the file."""
    return error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def error_code(error: sqlite3.Error) -> int:
    """The primary result code, which is the low byte; 0 for errors of the Python module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def retry_while_busy(work: Callable[[], T], pause_s: float = 0.01) -> T:
    """Run `work`, and repeat it for up to `BUSY_TIMEOUT_S` while the file is locked."""
    until = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return work()
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(pause_s)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        # To read a file in WAL mode, SQLite makes a second file beside it. It cannot do so in a read-only folder, and
        # need not, because no process can have written there.
        if error.sqlite_errorname != "SQLITE_READONLY_DIRECTORY":
            raise
        connection = sqlite3.connect(
            f"{uri}&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
    return connection
