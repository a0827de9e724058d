"""How long an endpoint asks us to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `retry-after-ms` or Retry-After: a number, or an HTTP date (RFC 9110, 10.2.3).

    Args:
        headers: of a reply; the names as given here, whatever their case where the mapping does not care.

    None: nothing usable was said.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("Retry-After")
    seconds = _number(said)
    if seconds is not None or said is None:
        return seconds
    try:
        then = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _number(text: str | None) -> float | None:
    """Not negative and finite, or nothing."""
    if text is None or not text.strip()[:1].isdecimal():
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
