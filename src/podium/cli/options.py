"""The options that several verbs share, as the parser fills them. `team_options` has those of a team."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.errors import UsageError

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""An option without a value; it has no --no- form."""

JSONArray = Annotated[bool, Parameter(negative="", show_default=False, help="Print a JSON array.")]
"""The option --json of verbs that list things."""

DEFAULT_STORE = "$PODIUM_STORE, else ~/.local/share/podium/traces.sqlite"

StoreFile = Annotated[
    Path | None,
    Parameter(
        name="--store", help=f"The SQLite file of traces. Default: that of team.toml, {DEFAULT_STORE}."
    ),
]

StoreLocation = Annotated[
    str | None,
    Parameter(
        name="--store",
        help="The store of traces and keys: an SQLite file, or postgresql://USER@HOST/DATABASE. Default: that of "
        f"team.toml, {DEFAULT_STORE}.",
    ),
]


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_time(text: str, now: datetime) -> datetime:
    """The time, in UTC, of "2026-03-01" or "2026-03-01T12:30" (UTC unless it has an offset), or of "12h" or "2d" before
    `now`, which is in UTC."""
    wanted = text.strip()
    if ago := re.fullmatch(r"(\d{1,5})([mhdw])", wanted):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        moment = datetime.fromisoformat(wanted)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{wanted!r} is not a time; write a date such as 2026-03-01, or 12h or 2d for hours or days ago."
        ) from None
