"""The trace, which is the record of one question. `store` keeps traces."""

from podium.trace.model import (
    Attempt,
    Outcome,
    Reply,
    RoundTrace,
    Span,
    SpanStatus,
    Trace,
    TraceStatus,
    Verdict,
    VoteCount,
)
from podium.trace.plan import Plan

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
    "Verdict",
    "VoteCount",
]
