"""The trace, which is the record of one question. `store` keeps traces."""

from podium.trace.model import (
    Outcome,
    Reply,
    RoundTrace,
    Span,
    SpanStatus,
    Trace,
    TraceStatus,
    VoteCount,
)
from podium.trace.plan import Attempt, Plan

__all__ = [
    "Attempt",
    "Outcome",
    "Plan",
    "Reply",
    "RoundTrace",
    "Span",
    "SpanStatus",
    "Trace",
    "TraceStatus",
    "VoteCount",
]
