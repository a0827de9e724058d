"""Reads when an endpoint wants to be asked again: from headers, from the body of its error, and from its text.

The most exact hint counts: Retry-After, then a field of the body (Google's RetryInfo), then the text, then the moment
at which a used-up rate limit is full again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any

_DEPTH = 6
"""Levels of a body that are searched; OpenRouter's headers are on the fifth."""
_EPOCH = 1e9
"""A number of seconds from here on is a moment (1970 is its zero); from `_EPOCH_MS` on, one in milliseconds."""
_EPOCH_MS = 1e12
_FIELDS = frozenset({"retrydelay", "retryafter", "retryafterseconds", "retryaftersecs", "retryafterms"})
"""Names of fields with a hint, in lower case and without _ and -."""
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_UNITS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
"""Seconds by how the word of a unit begins. The first that fits counts."""
_PART = re.compile(
    rf"({_NUMBER})\s?(ms|milliseconds?|d|days?|h|hours?|hrs?|s|sec|secs|seconds?|m|min|mins|minutes?)(?![a-z])"
    r"[ ,]*(?:and )?"
)
_IN_TEXT = re.compile(
    r"(?:(?:re)?try(?:ing)?(?: again| your request| this request)*|wait(?: for)?|resets?|available(?: again)?|back"
    rf")(?: at least| about| after| for| in)*:? (?P<wait>(?:{_NUMBER} ?[a-z]+[ ,]{{0,2}}(?:and )?){{1,4}})"
)


def retry_after(
    headers: Mapping[str, str], body: Any = None, text: str = "", *, limited: bool = True
) -> float | None:
    """Seconds to wait before a retry, at least 0, or None if the response gives no usable hint.

    Args:
        limited: whether a rate limit was reached. Only then `x-ratelimit-reset` and its like are read, since providers
            send them with every response.
    """
    in_text = (_duration(hint["wait"]) for hint in _IN_TEXT.finditer(text.lower()))
    hints = chain(_in_headers(headers, limited=False), _in_body(body, 0), in_text)
    resets = _in_headers(headers, limited=True) if limited else ()
    return next((seconds for seconds in chain(hints, resets) if seconds is not None), None)


def _in_headers(headers: Mapping[str, str], *, limited: bool) -> Iterator[float | None]:
    """The hints of Retry-After. If `limited`, then the longest wait of the limits that are used up, or of all limits
    without a count."""
    by_name = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
    milliseconds = _number(by_name.get("retry-after-ms"))
    yield None if milliseconds is None else milliseconds / 1000
    yield _seconds(by_name.get("retry-after"))
    if limited:
        waits = (
            _seconds(value)
            for name, value in by_name.items()
            if "ratelimit" in name and "reset" in name
            if not _number(by_name.get(name.replace("reset", "remaining")))
        )
        yield max((wait for wait in waits if wait is not None), default=None)


def _in_body(value: Any, depth: int) -> Iterator[float | None]:
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _in_body(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            word = name.lower().replace("_", "").replace("-", "")
            if name == "headers" and isinstance(item, dict):
                # The headers of a gateway, with the headers of the provider behind it.
                yield from _in_headers(item, limited=True)
            elif word in _FIELDS and isinstance(item, str | int | float):
                seconds = _seconds(str(item))
                yield seconds / 1000 if seconds is not None and word.endswith("ms") else seconds
            else:
                yield from _in_body(item, depth + 1)


def _seconds(text: str | None) -> float | None:
    """Seconds from now: a number, a moment in seconds or milliseconds, a duration, or a date."""
    number = _number(text)
    if text is None or number is None:
        return None if text is None else _duration(text.strip().lower()) or _seconds_until(text.strip())
    moment = number / 1000 if number >= _EPOCH_MS else number
    return max(0.0, moment - datetime.now(UTC).timestamp()) if number >= _EPOCH else number


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(rf"\s*{_NUMBER}\s*", text) else None


def _duration(text: str) -> float | None:
    """The length of "1.2s", "20 s", "1m3s", "6m0s", "120ms", "2 minutes and 5 seconds"; or None if it does not begin
    with one."""
    total, end = None, 0
    while part := _PART.match(text, end):
        unit = next(seconds for word, seconds in _UNITS.items() if part[2].startswith(word))
        total, end = (total or 0.0) + float(part[1]) * unit, part.end()
    return total


def _seconds_until(text: str) -> float | None:
    """Seconds until a date in the form of HTTP (RFC 9110, 5.6.7) or ISO 8601."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            then = read(text)
            return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None
