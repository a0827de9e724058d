"""The state file: an SQLite file in which processes share what they have spent and which workers are in cooldown.

This module has the path and the tables of the file, and reads and writes cooldowns. `shared_spend_limit` does the same
for spending. A `breaker` decides when a cooldown begins and ends. If the file cannot be used, cooldowns are not shared,
and nothing fails.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path

from podium.calls.breaker import Cooldown
from podium.errors import UsageError
from podium.sqlite_files import SQLiteSchema, default_store_path
from podium.workers.base import Worker

STATE = SQLiteSchema(
    "state file",
    mark=0x506F4453,  # "PoDS"
    version=2,
    tables=(
        "CREATE TABLE IF NOT EXISTS spending ("
        "name TEXT, day TEXT, spent INTEGER, reserved INTEGER, PRIMARY KEY (name, day)) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS cooldowns ("
        "worker TEXT PRIMARY KEY, name TEXT, since REAL, probe_at REAL, failures INTEGER, error TEXT"
        ") WITHOUT ROWID",
    ),
    way_out="move it away or set PODIUM_STORE to another folder",
    synchronous="NORMAL",  # Written before and after each call that is paid for.
)


_BUSY_MS = 100
"""The longest wait for a locked file. Cooldowns are written on the event loop, which must not wait for long."""


def default_state_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`state.sqlite` in the folder of the default trace store. A store that is a database server has no folder, so then
    in the folder of the default file."""
    if "://" in environ.get("PODIUM_STORE", ""):
        environ = {name: value for name, value in environ.items() if name != "PODIUM_STORE"}
    return default_store_path(environ).with_name("state.sqlite")


class CooldownFile:
    """Cooldowns by the identity of the worker: the same endpoint and model is one worker, whatever its name in a pool.

    Workers without an identity belong to one process, so their cooldowns are not shared.

    Args:
        path: the state file. Default: the default state file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_state_path() if path is None else path
        self._file: sqlite3.Connection | None = None

    def note(self, worker: Worker, cooldown: Cooldown | None) -> None:
        """Write the cooldown of `worker`, or delete it if the worker answers again (None)."""
        key = _key(worker)
        if key is None:
            return
        if cooldown is None:
            self._run("DELETE FROM cooldowns WHERE worker = ?", (key,))
        else:
            values = (key, worker.profile.name, *astuple(cooldown))
            self._run("INSERT OR REPLACE INTO cooldowns VALUES (?, ?, ?, ?, ?, ?)", values, create=True)

    def get(self, worker: Worker) -> Cooldown | None:
        """The cooldown of `worker`. None if no process has written one."""
        key = _key(worker)
        if key is None:
            return None
        rows = self._run("SELECT since, probe_at, failures, error FROM cooldowns WHERE worker = ?", (key,))
        return Cooldown(*rows[0]) if rows else None

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _run(
        self, statement: str, values: tuple[str | float, ...] = (), *, create: bool = False
    ) -> list[tuple[float, float, int, str]]:
        try:
            if self._file is None:
                if not create and not self.path.is_file():
                    return []
                self._file = STATE.open(self.path)
                self._file.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            return self._file.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError, UsageError):
            return []


def _key(worker: Worker) -> str | None:
    if worker.identity is None:
        return None
    return sha256(json.dumps(worker.identity, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
