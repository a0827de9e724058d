"""Which found settings files the user trusts: a file of their own keeps the digests of what they have seen.

A settings file that lies in the working folder may have come with a cloned repository. Nobody obeys it before
`podium trust` has kept its content here, and the content of the files that it refers to (`found_files`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.cli.found_files import FoundFiles, settings_key
from podium.errors import UsageError
from podium.sqlite_files import SQLiteSchema, data_folder

TRUST_FILE = SQLiteSchema(
    "file of trusted settings",
    mark=0x506F4454,  # "PoDT"
    version=1,
    tables=(
        "CREATE TABLE IF NOT EXISTS trusted (file TEXT PRIMARY KEY, digests TEXT, since TEXT) WITHOUT ROWID",
    ),
    way_out="move it away or set XDG_DATA_HOME, and trust your settings files again",
)


@dataclass(frozen=True, slots=True)
class Trusted:
    """A settings file as the user trusted it."""

    file: str
    """The path of the settings file, as `FoundFiles.key` gives it."""
    digests: Mapping[str, str]
    """The digests of all files that were trusted, as `FoundFiles.digests` gives them."""
    since: str
    """The day, as 2026-11-27 (UTC)."""

    def changes(self, files: FoundFiles) -> tuple[str, ...]:
        """What is not as it was trusted, as "team.toml has changed". Empty if all is."""
        now, then = files.digests, self.digests
        return (
            *(f"{_short(name)} has changed" for name in now if name in then and now[name] != then[name]),
            *(f"{_short(name)} is new" for name in now if name not in then),
            *(f"{_short(name)} is gone" for name in then if name not in now),
        )


def trusted_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`trusted.sqlite` in the folder for data. PODIUM_STORE has no say: a relative one would lead into a found folder.

    Raises:
        UsageError: the folder for data depends on the working folder.
    """
    folder = data_folder(environ)
    if not folder.is_absolute():
        raise UsageError(f"{folder} is not absolute; set XDG_DATA_HOME to an absolute path.")
    return folder / "trusted.sqlite"


def trusted(files: FoundFiles) -> Trusted | None:
    """What the user trusted of this settings file, at whatever content, or None if it was never trusted.

    Raises:
        UsageError: the record cannot be read, or others can write it.
    """
    return next((row for row in all_trusted() if row.file == _text(files.key)), None)


def all_trusted() -> tuple[Trusted, ...]:
    """All trusted settings files, by path.

    Raises:
        UsageError: see `trusted`.
    """
    path = trusted_path()
    if not path.exists():
        return ()
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"Others can write {path}, so it says nothing of what you trust; remove it, and trust again."
        )
    with _opened(write=False) as file:
        rows = file.execute("SELECT file, digests, since FROM trusted ORDER BY file").fetchall()
    return tuple(Trusted(name, json.loads(digests), since) for name, digests, since in rows)


def trust(files: FoundFiles) -> None:
    """Keep that the user trusts these files, as they were read.

    Raises:
        UsageError: the record cannot be written.
    """
    row = (_text(files.key), json.dumps(dict(files.digests)), datetime.now(UTC).date().isoformat())
    with _opened(write=True) as file:
        file.execute("INSERT OR REPLACE INTO trusted VALUES (?, ?, ?)", row)


def revoke(path: Path) -> bool:
    """Trust a settings file no longer; it need not exist. False: it was not trusted.

    Raises:
        UsageError: the record cannot be written.
    """
    if not trusted_path().exists():
        return False
    with _opened(write=True) as file:
        key = _text(str(settings_key(path)))
        return file.execute("DELETE FROM trusted WHERE file = ?", (key,)).rowcount > 0


@contextmanager
def _opened(*, write: bool) -> Iterator[sqlite3.Connection]:
    path = trusted_path()
    with closing(TRUST_FILE.open(path) if write else TRUST_FILE.open_read_only(path)) as file:
        try:
            yield file
        except sqlite3.Error as error:
            raise UsageError(f"{path} cannot be used ({error}); {TRUST_FILE.way_out}.") from None


def _short(name: str) -> str:
    """A path for a sentence: seen from the working folder where it is below it."""
    path, working_folder = Path(name), Path(os.path.realpath("."))
    return str(path.relative_to(working_folder)) if path.is_relative_to(working_folder) else name


def _text(path: str) -> str:
    """A path as SQLite takes it, also where it is no UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()
