"""Opens the keys that belong to a store of traces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from podium.server.keys.register import Register
from podium.trace.store import default_path

FILE = "keys.sqlite"
"""Beside the file of traces."""


def open_register(
    store: str | Path | None = None, *, create: bool = True, environ: Mapping[str, str] = os.environ
) -> Register:
    """The keys in the same database as a store's traces, or in a file beside theirs.

    Args:
        store: where the traces are: an SQLite file, or an address as "postgresql+asyncpg://user@host/database"; None:
            the default place.
        create: whether a missing file of keys is made.

    Raises:
        UsageError: it cannot be opened, or what it needs is not installed.
    """
    place = str(store or environ.get("PODIUM_STORE") or "")
    if "://" in place:
        from podium.server.keys.postgres import PostgresRegister  # noqa: PLC0415 - an extra

        return PostgresRegister(place)
    from podium.server.keys.sqlite import SqliteRegister  # noqa: PLC0415 - not with the other

    path = Path(place).expanduser() if place else default_path(environ)
    return SqliteRegister(path.with_name(FILE), create=create)
