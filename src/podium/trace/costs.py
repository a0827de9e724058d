"""What a question paid to each of its workers and for its plans.

Stores keep these costs in rows beside the trace (`serialization`), and `podium.store.spend_report` sums them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Self

from podium.trace.model import RoundTrace, Span, Trace
from podium.types import NO_USAGE, Spent

PLANNING = ""
"""The name for plans where otherwise a worker is named."""
_ROUNDING_USD = 1e-12
"""Two sums of dollars that differ by less are equal except for rounding errors."""


class Cost(NamedTuple):
    """The cost of one worker in a question, or of the question's plans. Every trace has a row for its plans, even if
    they cost nothing."""

    worker: str
    """The worker's name, or `PLANNING` for the plans."""
    calls: int
    """How many calls were answered or failed for good. For plans, how many plans a model wrote."""
    unpriced: int
    """How many of the calls have no known price. `usd` leaves them out."""
    tokens: int
    """Tokens of input and output together."""
    usd: float
    """Dollars, including tries that gave no answer."""
    unpaid_usd: float
    """The part of `usd` that is not paid, because the answer was recorded."""
    saved_usd: float
    """Dollars that answers and plans from the response cache had cost when they were made."""

    def plus(self, other: Self) -> Self:
        """The sum for the same worker."""
        sums: Any = (mine + its for mine, its in zip(self[1:], other[1:], strict=True))
        return type(self)(self.worker, *sums)


def spent_by_worker(spans: Iterable[Span]) -> dict[str, Spent]:
    """What each worker took in these steps. An attempt without an answer counts for the worker that was tried, and an
    answer for the worker that gave it."""
    by_worker: dict[str, Spent] = {}
    for span in spans:
        parts = _paid_attempts(span)
        if span.called:
            parts.append((span.answered_by or span.worker, _spent_on_answer(span, parts)))
        for name, spent in parts:
            by_worker[name] = by_worker.get(name, Spent()) + spent
    return by_worker


def _paid_attempts(span: Span) -> list[tuple[str, Spent]]:
    return [
        (tried.worker, tried.spent)
        for tried in span.attempts
        if tried.spent.cost_usd or tried.spent.usage.tokens
    ]


def _spent_on_answer(span: Span, attempts: Sequence[tuple[str, Spent]]) -> Spent:
    attempts_usd = 0.0
    for _, taken in attempts:
        attempts_usd += taken.cost_usd
    usd = span.spent.cost_usd - attempts_usd
    return replace(
        span.spent,
        usage=NO_USAGE if span.reply is None else span.reply.usage,
        cost_usd=usd if usd > _ROUNDING_USD else 0.0,
    )


def costs_of(trace: Trace) -> tuple[Cost, ...]:
    """The costs of a trace: first those of its plans, then those of each worker, in the order of the steps, counted as
    `spent_by_worker` does. The cost of a team includes all its own workers and plans."""
    by_worker = {PLANNING: _cost_of_plans(trace.rounds)}
    for span in trace.spans:
        attempts = _paid_attempts(span)
        costs = [Cost(name, 0, 0, taken.usage.tokens, taken.cost_usd, 0, 0) for name, taken in attempts]
        if span.called:
            costs.append(_cost_of_answer(span, _spent_on_answer(span, attempts)))
        for cost in costs:
            by_worker[cost.worker] = by_worker[cost.worker].plus(cost) if cost.worker in by_worker else cost
    return tuple(by_worker.values())


def _cost_of_plans(rounds: tuple[RoundTrace, ...]) -> Cost:
    plans = [_cost_of_plan(round_.plan.spent) for round_ in rounds]
    return reduce(Cost.plus, plans or [_cost_of_plan(Spent())])


def _cost_of_plan(spent: Spent) -> Cost:
    return Cost(
        PLANNING,
        calls=int(bool(spent.usage.tokens or spent.cost_usd or spent.unpriced)),
        unpriced=int(spent.unpriced),
        tokens=spent.usage.tokens,
        usd=spent.cost_usd,
        unpaid_usd=0.0,
        saved_usd=spent.saved_usd,
    )


def _cost_of_answer(span: Span, spent: Spent) -> Cost:
    reply, usd = span.reply, spent.cost_usd
    if reply is not None and reply.nested is not None:
        unpaid_usd = min(usd, sum(cost.unpaid_usd for cost in costs_of(reply.nested)))
    else:
        unpaid_usd = usd if reply is not None and reply.recorded is not None else 0.0
    name, tokens = span.answered_by or span.worker, spent.usage.tokens
    return Cost(name, 1, int(spent.unpriced), tokens, usd, unpaid_usd, spent.saved_usd)
