"""Moments as a user writes them: a date, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from podium.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_moment(text: str, now: datetime) -> datetime:
    """The moment of "2026-03-01", of "2026-03-01T12:30" (UTC unless it says otherwise), or "12h", "2d" ago.

    Raises:
        UsageError: it is none of these.
    """
    wanted = text.strip()
    if ago := re.fullmatch(r"(\d{1,5})([mhdw])", wanted):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        moment = datetime.fromisoformat(wanted)
    except ValueError:
        raise UsageError(
            f"{wanted!r} is not a moment; write a date as 2026-03-01, or 12h or 2d ago."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
