"""What happened: the record of one question, and where it is kept."""

from podium.trace.model import Attempt, RoundTrace, Span, Trace, TraceStatus, VoteCount

__all__ = ["Attempt", "RoundTrace", "Span", "Trace", "TraceStatus", "VoteCount"]
