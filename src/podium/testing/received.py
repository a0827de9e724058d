"""What the fault server remembers of a request, and what is measured on it.

Records are frozen and their times are of one monotonic clock. Nothing here is enforced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podium.testing.answer import content_text


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as far as it had come when this was read."""

    number: int
    """In order of arrival, from 0."""
    at: float
    """Seconds of `time.monotonic`, which is also the clock of asyncio's own event loop."""
    path: str
    model: str | None
    """None: the body named none."""
    body: Mapping[str, Any]
    """As sent; empty where it was no JSON object."""
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case. With the key, so keep it out of what you print."""
    fault: str | None
    """The kind of the rule's fault; "key", "model", "limit", "body" or "path" where the server refused by itself,
    "down" where `down()` or the server's end cut it; None: answered well."""
    status: int | None
    """HTTP status of the reply; None: none was begun."""
    input_tokens: int
    output_tokens: int
    """0 until the model has answered."""
    ended_at: float | None
    """None: still in flight."""
    gone_at: float | None
    """When the client went away before the end; None: it did not."""

    @property
    def in_flight(self) -> bool:
        """Whether it had not ended."""
        return self.ended_at is None

    @property
    def went_away(self) -> bool:
        """Whether the client closed the connection before the reply's end."""
        return self.gone_at is not None

    @property
    def seconds(self) -> float | None:
        """From its arrival to its end; None: still in flight."""
        return None if self.ended_at is None else self.ended_at - self.at

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def text(self) -> str:
        """All contents of its messages, a line between them: what `Rule.contains` looks at."""
        messages = self.body.get("messages")
        return messages_text(messages) if isinstance(messages, list) else ""


class Minute(NamedTuple):
    """The most of each kind that any window of a minute held; the two windows may differ."""

    requests: int
    tokens: int


def worst_minute(requests: Iterable[Received], seconds: float = 60.0) -> Minute:
    """The most requests, and the most tokens, that arrived in any window of `seconds`.

    Exact: every window [t, t + seconds) is looked at. Select a model's first, as its limits are its own.
    """
    window: deque[Received] = deque()
    tokens = most_requests = most_tokens = 0
    for request in sorted(requests, key=lambda each: each.at):
        window.append(request)
        tokens += request.tokens
        while request.at - window[0].at >= seconds:
            tokens -= window.popleft().tokens
        most_requests = max(most_requests, len(window))
        most_tokens = max(most_tokens, tokens)
    return Minute(most_requests, most_tokens)


def most_at_once(requests: Iterable[Received]) -> int:
    """The most requests that were in flight at one moment."""
    # An end comes before a beginning of the same moment: the two did not overlap.
    known = list(requests)
    moments = [(each.at, 1) for each in known]
    moments += [(each.ended_at, -1) for each in known if each.ended_at is not None]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most


def messages_text(messages: Iterable[object]) -> str:
    """All contents, a line between them."""
    return "\n".join(content_text(each.get("content")) for each in messages if isinstance(each, Mapping))
