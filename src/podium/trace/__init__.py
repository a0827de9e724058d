"""The trace, which is the record of one question. `store` keeps traces."""

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
from podium.trace.plan import Attempt, AttemptErrorKind, Plan

__all__ = [
    "Attempt",
    "AttemptErrorKind",
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
