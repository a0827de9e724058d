"""The frontier of constant plans: for each cost, the most accurate plan that `search` found.

One JSON file. Its accuracies are those of the questions searched on, so they flatter: compare a chosen plan
on other questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from podium.baselines import Constant, read_constant
from podium.evals.saved import Saved
from podium.types import Value

T = TypeVar("T")


class ConstantPlan(Value):
    """One workflow for every question, and how it did."""

    plan: str
    """The workflow's text, numbered as the frontier's workers are."""
    accuracy: float
    cost_usd: float
    """Dollars a question, on average."""


class Frontier(Saved):
    """The plans that no other plan beats in both accuracy and cost, cheapest first."""

    called = "constant plans"

    workers: tuple[str, ...]
    """Names of the pool's workers, in the order of the plans' numbers."""
    plans: tuple[ConstantPlan, ...]
    max_steps: int
    """Steps that a plan was allowed."""
    questions: int
    """How many questions the plans were compared on."""
    seed: str

    def within(self, cost_usd: float) -> Constant | None:
        """The most accurate plan of at most `cost_usd` dollars a question; None when all cost more."""
        affordable = [plan for plan in self.plans if plan.cost_usd <= cost_usd]
        if not affordable:
            return None
        best = max(affordable, key=lambda plan: (plan.accuracy, -plan.cost_usd))
        return read_constant(best.plan, self.workers, name="constant", max_steps=self.max_steps)


def ranked(plans: Sequence[tuple[T, ConstantPlan]]) -> list[T]:
    """The undominated plans, the better first; then those undominated among the rest, and so on."""
    order: list[T] = []
    rest = list(plans)
    while rest:
        front = set(undominated([result for _, result in rest]))
        first = [pair for pair in rest if pair[1] in front]
        order += [plan for plan, _ in sorted(first, key=lambda pair: -pair[1].accuracy)]
        rest = [pair for pair in rest if pair[1] not in front]
    return order


def undominated(plans: Sequence[ConstantPlan]) -> tuple[ConstantPlan, ...]:
    """The plans that none beats in both accuracy and cost, cheapest first."""
    kept: list[ConstantPlan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost_usd, -plan.accuracy)):
        if not kept or plan.accuracy > kept[-1].accuracy:
            kept.append(plan)
    return tuple(kept)
