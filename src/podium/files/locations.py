"""Where Podium keeps data: its folder, and the store of traces, which may be a file or the address of a database."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from podium.errors import UsageError

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A path object has one slash of "mysql://..." left."""


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`podium` under `$XDG_DATA_HOME` or `~/.local/share`."""
    return Path(environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "podium"


def default_store(environ: Mapping[str, str] = os.environ) -> str:
    """`$PODIUM_STORE`, which may be the address of a database, else `traces.sqlite` in the folder for data."""
    chosen = environ.get("PODIUM_STORE")
    return os.path.expanduser(chosen) if chosen else str(data_folder(environ) / "traces.sqlite")


def default_store_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`default_store`, where only a file can be used: the address of a database is a `UsageError`."""
    store = default_store(environ)
    if "://" in store:
        raise UsageError(
            "PODIUM_STORE is the address of a server's database, and this needs a file; name a file instead."
        )
    refuse_database_address(store)
    return Path(store)


def refuse_database_address(path: Path | str) -> None:
    """Refuse the address of a database where only a file can be read. The message omits it: it may have a password."""
    if _ADDRESS.match(str(path)):
        raise UsageError(
            "The store is the address of a database, and this needs a file; name a file instead."
        )


def refuse_malformed_address(store: Path | str) -> None:
    """Refuse an address that has lost a slash: it would become a folder, whose name has the password."""
    if _ADDRESS.match(str(store)) and "://" not in str(store):
        raise UsageError("The store's address has one slash too few; write postgresql://USER@HOST/DATABASE.")
