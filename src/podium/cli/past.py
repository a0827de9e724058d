"""What a store of traces knows of workers: how often each was called, how often in vain, and how long it took."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from podium.trace import Span, Trace


@dataclass(frozen=True, slots=True)
class Past:
    """One worker's past."""

    calls: int
    """Attempts; answers of the response cache are none."""
    failures: int
    median_s: float | None
    """Seconds of those that were answered: as claimed by a simulated worker, else by the clock."""


def read_past(traces: Iterable[Trace]) -> dict[str, Past]:
    """The past of every worker that `traces` name. What was called off counts as no call."""
    taken: dict[str, list[float]] = {}
    failures: dict[str, int] = {}
    for trace in traces:
        for span in trace.spans:
            for attempt in span.attempts:
                if attempt.error_kind is None:
                    seconds = _seconds(span, attempt.ended_s - attempt.started_s)
                    taken.setdefault(attempt.worker, []).append(seconds)
                elif attempt.error_kind != "cancelled":
                    failures[attempt.worker] = failures.get(attempt.worker, 0) + 1
    return {
        name: Past(
            calls=len(taken.get(name, ())) + failures.get(name, 0),
            failures=failures.get(name, 0),
            median_s=statistics.median(taken[name]) if name in taken else None,
        )
        for name in {**taken, **failures}
    }


def _seconds(span: Span, by_the_clock: float) -> float:
    return by_the_clock if span.simulated_s is None else span.simulated_s
