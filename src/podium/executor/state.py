"""The state file: an SQLite file in which processes tell one another what they spend and which workers rest.

Where it is and which tables it has. What stands in them is their owners' to say: `accounts` and `resting`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from podium.database import FileForm
from podium.trace.store import default_path

STATE = FileForm(
    "state file",
    mark=0x506F4453,  # "PoDS"
    version=1,
    tables=(
        "CREATE TABLE IF NOT EXISTS spending ("
        "account TEXT, day TEXT, spent INTEGER, held INTEGER, PRIMARY KEY (account, day)) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS resting ("
        "worker TEXT PRIMARY KEY, name TEXT, since REAL, probe_at REAL, failures INTEGER, error TEXT"
        ") WITHOUT ROWID",
    ),
    way_out="move it away or set PODIUM_STORE to another folder",
    synchronous="NORMAL",  # Written before and after each call that is paid for.
)


def default_state_path(environ: Mapping[str, str] = os.environ) -> Path:
    """`state.sqlite` beside the default store of traces; where that is a server's, in its usual folder."""
    if "://" in environ.get("PODIUM_STORE", ""):
        environ = {name: value for name, value in environ.items() if name != "PODIUM_STORE"}
    return default_path(environ).with_name("state.sqlite")
