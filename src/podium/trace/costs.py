"""What a question paid to each of its workers, and for its plans: rows that the stores keep beside the trace.

`serialization` puts these rows beside a trace's other columns; `spend` sums them in the database.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from podium.trace.model import RoundTrace, Span, Trace
from podium.types import Price, Profile

PLANNING = ""
"""Stands for the plans where otherwise a worker's name stands."""
_NOTHING_USD = 1e-12
"""A smaller difference of two sums of dollars is a rounding error, and counts as 0."""


class Cost(NamedTuple):
    """What one worker of a question cost, or its plans. Every trace has one of the plans, also if they were free."""

    worker: str
    """`PLANNING`: the plans."""
    calls: int
    """Calls that were answered or failed for good; plans that a model wrote."""
    unpriced: int
    """Those of the calls whose price is not known. `usd` leaves them out."""
    tokens: int
    """Input and output."""
    usd: float
    """Dollars, with those of tries that gave no answer."""
    unpaid_usd: float
    """The part of `usd` that nobody pays, because the answer was recorded."""
    saved_usd: float
    """Dollars that answers and plans from the response cache had cost when they were made."""

    def plus(self, other: Self) -> Self:
        """The sum for the same worker."""
        sums: Any = (mine + its for mine, its in zip(self[1:], other[1:], strict=True))
        return type(self)(self.worker, *sums)


def costs_of(trace: Trace) -> tuple[Cost, ...]:
    """The plans first, then each worker once, in the order of the steps.

    A try without an answer counts for the worker that was tried, the answer for the worker that gave it. A team counts
    with all that its own workers and plans cost.
    """
    found = {PLANNING: _of_plans(trace.rounds)}
    for span in trace.spans:
        tries = [
            Cost(tried.worker, 0, 0, tried.usage.tokens, tried.cost_usd, 0, 0)
            for tried in span.attempts
            if tried.cost_usd or tried.usage.tokens
        ]
        answer = [_of_answer(span, sum(cost.usd for cost in tries), trace.pool)] if span.called else []
        for cost in (*tries, *answer):
            found[cost.worker] = found[cost.worker].plus(cost) if cost.worker in found else cost
    return tuple(found.values())


def _of_plans(rounds: tuple[RoundTrace, ...]) -> Cost:
    return Cost(
        PLANNING,
        calls=sum(bool(r.plan_usage.tokens or r.plan_cost_usd or r.plan_unpriced) for r in rounds),
        unpriced=sum(r.plan_unpriced for r in rounds),
        tokens=sum(r.plan_usage.tokens for r in rounds),
        usd=sum(r.plan_cost_usd for r in rounds),
        unpaid_usd=0.0,
        saved_usd=sum(r.plan_saved_usd for r in rounds),
    )


def _of_answer(span: Span, tried_usd: float, pool: tuple[Profile, ...]) -> Cost:
    """A step, without the dollars of tries that gave no answer."""
    worker = span.answered_by or span.worker
    usd = span.cost_usd - tried_usd
    usd = usd if usd > _NOTHING_USD else 0.0
    reply = span.reply
    if reply is None:
        return Cost(worker, 1, 0, 0, usd, 0.0, span.saved_usd)
    if reply.nested is not None:
        inner = costs_of(reply.nested)
        unpriced = any(cost.unpriced for cost in inner)
        unpaid_usd = min(usd, sum(cost.unpaid_usd for cost in inner))
    else:
        recorded = reply.recorded is not None
        paid = not (reply.cached or recorded)
        unpriced = paid and not usd and reply.usage.tokens > 0 and _has_no_price(worker, pool)
        unpaid_usd = usd if recorded else 0.0
    return Cost(worker, 1, int(unpriced), reply.usage.tokens, usd, unpaid_usd, span.saved_usd)


def _has_no_price(worker: str, pool: tuple[Profile, ...]) -> bool:
    return any(profile.name == worker and profile.price == Price() for profile in pool)
