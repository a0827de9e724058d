"""The trace, which is the record of one question. `store` keeps traces."""

from podium.trace.attempt import Attempt
from podium.trace.model import (
    Outcome,
    OutcomeVerdict,
    Reply,
    RoundTrace,
    Span,
    SpanStatus,
    Trace,
    TraceStatus,
    VoteCount,
)
from podium.trace.plan import Plan

__all__ = [
    "Attempt",
    "Outcome",
    "OutcomeVerdict",
    "Plan",
    "Reply",
    "RoundTrace",
    "Span",
    "SpanStatus",
    "Trace",
    "TraceStatus",
    "VoteCount",
]
