"""The trace, which is the record of one question; and the stores that keep traces."""

from podium.trace.model import Attempt, RejectedPlan, RoundTrace, Span, Trace, TraceStatus, VoteCount

__all__ = ["Attempt", "RejectedPlan", "RoundTrace", "Span", "Trace", "TraceStatus", "VoteCount"]
