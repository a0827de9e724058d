"""What a list shows of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from podium.trace.model import TraceStatus


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One line of a list."""

    id: str
    started: datetime
    """UTC."""
    planner: str
    status: TraceStatus
    question: str
    """The first 200 characters."""
    calls: int
    cost_usd: float
    seconds: float
    workers: tuple[str, ...] = ()
    """Names of those that answered, or were asked in vain; each once, in the order of the steps."""
    owner: str | None = None
    """Name of the key with which it was asked."""
