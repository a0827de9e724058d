"""A trace as databases keep it: what lists and filters need in columns, and the whole of it as JSON.

No column holds what a database cannot: half surrogate pairs become "?", and null characters U+FFFD. In the document
null characters are JSON's escapes, and stay.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from podium.trace.jsonl import clean, to_json
from podium.trace.model import Trace

_QUESTION_START = 200
_SEARCHED = 1000
"""Characters of a question's beginning, and of its end, that are searched: questions may hold whole books."""


class TraceRow(NamedTuple):
    """The columns, in the order of the tables."""

    id: str
    started: float
    """Seconds since 1970."""
    planner: str
    status: str
    question: str
    calls: int
    cost_usd: float
    seconds: float
    document: str
    owner: str | None
    workers: tuple[str, ...]
    searched: str


def to_row(trace: Trace) -> TraceRow:
    """The row of `trace`."""
    return TraceRow(
        id=plain(trace.id),
        started=to_seconds(trace.started_at),
        planner=plain(trace.planner),
        status=trace.status,
        question=plain(trace.question.text[:_QUESTION_START]),
        calls=trace.calls,
        cost_usd=trace.cost_usd,
        seconds=trace.seconds,
        document=to_json(trace),
        owner=None if trace.owner is None else plain(trace.owner),
        workers=tuple(dict.fromkeys(plain(span.answered_by or span.worker) for span in trace.spans)),
        searched=to_searched(trace.question.text),
    )


def to_searched(text: str) -> str:
    """What is searched of a question: beginning and end, with the case of letters folded."""
    if len(text) > 2 * _SEARCHED:
        text = f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
    return plain(text).casefold()


def plain(text: str) -> str:
    """`text` as every database can hold it."""
    return clean(text).replace("\0", "\ufffd")


def to_seconds(moment: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; one without a zone is UTC."""
    at = datetime.fromisoformat(moment)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
