"""The trace, which is the record of one question; and the stores that keep traces."""

from podium.trace.model import (
    Attempt,
    Feedback,
    RejectedPlan,
    Reply,
    RoundTrace,
    Span,
    Trace,
    TraceStatus,
    Verdict,
    VoteCount,
)

__all__ = [
    "Attempt",
    "Feedback",
    "RejectedPlan",
    "Reply",
    "RoundTrace",
    "Span",
    "Trace",
    "TraceStatus",
    "Verdict",
    "VoteCount",
]
