"""Reads when an endpoint wants to be asked again: from headers, from the body of its error, and from its text.

The most exact hint counts: Retry-After, then a field of the body (Google's RetryInfo), then the text, then the moment
at which a used-up rate limit is full again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_DEPTH = 6
"""Levels of a body that are searched; OpenRouter's headers are on the fifth."""
_EPOCH = 1e9
"""A number of seconds from here on is a moment (1970 is its zero); from `_EPOCH_MS` on, one in milliseconds."""
_EPOCH_MS = 1e12
_FIELDS = frozenset({"retrydelay", "retryafter", "retryafterseconds", "retryaftersecs", "retryafterms"})
"""Names of fields with a hint, in lower case and without _ and -."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(
    r"(?P<number>[0-9]{1,12}(?:\.[0-9]{1,12})?)\s?"
    r"(?P<unit>ms|milliseconds?|d|days?|h|hours?|hrs?|s|sec|secs|seconds?|m|min|mins|minutes?)(?![a-z])"
)
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_IN_TEXT = re.compile(
    r"(?:(?:re)?try(?:ing)?(?: again| your request| this request)*|wait(?: for)?|resets?|available(?: again)?|back"
    rf")(?: at least| about| after| for| in)*:? (?P<wait>(?:{_NUMBER} ?[a-z]+[ ,]{{0,2}}(?:and )?){{1,4}})"
)


def retry_after(
    headers: Mapping[str, str], body: Any = None, text: str = "", *, limited: bool = True
) -> float | None:
    """Seconds to wait before a retry, at least 0, or None if the response gives no usable hint.

    Args:
        headers: of the response, with names of any case.
        body: its JSON, if it has any.
        text: the message of its error.
        limited: whether a rate limit was reached. Only then `x-ratelimit-reset` and its like are read, since providers
            send them with every response.
    """
    by_name = {name.lower(): value for name, value in headers.items()}
    hints: list[Iterator[float | None]] = [_of_headers(by_name), _of_body(body, 0), _of_text(text)]
    if limited:
        hints.append(_of_resets(by_name))
    return next((seconds for source in hints for seconds in source if seconds is not None), None)


def _of_headers(headers: Mapping[str, str]) -> Iterator[float | None]:
    yield _scaled_number(headers.get("retry-after-ms"), 0.001)
    yield _seconds(headers.get("retry-after"))


def _of_body(value: Any, depth: int) -> Iterator[float | None]:
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _of_body(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            word = name.lower().replace("_", "").replace("-", "")
            if name == "headers" and isinstance(item, dict):
                # The headers of a gateway, with the headers of the provider behind it.
                headers = {key.lower(): text for key, text in item.items() if isinstance(text, str)}
                yield from _of_headers(headers)
                yield from _of_resets(headers)
            elif word in _FIELDS and isinstance(item, str | int | float):
                yield _scaled_number(str(item), 0.001) if word.endswith("ms") else _seconds(str(item))
            else:
                yield from _of_body(item, depth + 1)


def _of_text(text: str) -> Iterator[float | None]:
    for hint in _IN_TEXT.finditer(text.lower()):
        yield _duration(hint["wait"])


def _of_resets(headers: Mapping[str, str]) -> Iterator[float | None]:
    """The longest wait of the limits that are used up; of limits without a count, of all."""
    waits = [
        seconds
        for name, value in headers.items()
        if "ratelimit" in name and "reset" in name
        if _scaled_number(headers.get(name.replace("reset", "remaining")), 1.0) in (None, 0.0)
        if (seconds := _seconds(value)) is not None
    ]
    yield max(waits, default=None)


def _seconds(text: str | None) -> float | None:
    """Seconds from now: a number, a moment in seconds or milliseconds, a duration, or a date."""
    if text is None:
        return None
    number = _scaled_number(text, 1.0)
    if number is not None:
        moment = number / 1000 if number >= _EPOCH_MS else number
        return max(0.0, moment - datetime.now(UTC).timestamp()) if number >= _EPOCH else number
    seconds = _duration(text.strip().lower())
    return _seconds_until(text.strip()) if seconds is None else seconds


def _scaled_number(text: str | None, unit: float) -> float | None:
    """A finite number that is not negative, times `unit`, or None if the text is no such number."""
    if text is None or not text.strip()[:1].isdecimal():
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number * unit if math.isfinite(number) else None


def _duration(text: str) -> float | None:
    """The length of "1.2s", "20 s", "1m3s", "6m0s", "120ms", "2 minutes and 5 seconds"; or None if it does not begin
    with one."""
    total, end = None, 0
    while part := _PART.match(text, end):
        unit = part["unit"]
        total = (total or 0.0) + float(part["number"]) * _UNITS[
            "ms" if unit.startswith(("ms", "mil")) else unit[0]
        ]
        gap = re.compile(r"[ ,]*(?:and )?").match(text, part.end())
        end = part.end() if gap is None else gap.end()
    return total


def _seconds_until(text: str) -> float | None:
    """Seconds until a date in the form of HTTP (RFC 9110, 5.6.7) or ISO 8601."""
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        try:
            then = datetime.fromisoformat(text)
        except ValueError:
            return None
    try:
        return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    except OverflowError:
        return None
