"""Finds the best of many constant plans at each cost. A planner that uses the question must beat this control.

Successive halving (Jamieson & Talwalkar 2016) runs all candidates on a few questions and the better ones on more. The
result, a JSON file, has the most accurate plan for each cost. Its accuracies are too high, because the plans were
chosen on the same questions; compare the plans on others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from podium.errors import UsageError
from podium.evals.evaluation import evaluate
from podium.evals.json_file import JsonFile
from podium.planners import Constant, read_constant
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import FrozenModel
from podium.workflow import Workflow, render

T = TypeVar("T")


class ConstantPlan(FrozenModel):
    """One workflow for all questions, with its accuracy and its cost."""

    plan: str
    """The workflow's text; its worker numbers are positions in `ConstantPlanFront.workers`."""
    accuracy: float
    cost_usd: float
    """Dollars a question, on average."""


class ConstantPlanFront(JsonFile):
    """The plans that no other plan beats in both accuracy and cost, cheapest first."""

    description = "constant plans"

    workers: tuple[str, ...]
    """The names of the pool's workers; worker k of a plan is the one at k."""
    plans: tuple[ConstantPlan, ...]
    max_steps: int
    """The most steps that a plan could have."""
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


def rank_by_front(plans: Sequence[tuple[T, ConstantPlan]]) -> list[T]:
    """Sort plans by Pareto front (first the front of all plans, then of the rest), and within a front by accuracy."""
    order: list[T] = []
    rest = list(plans)
    while rest:
        front = set(undominated([result for _, result in rest]))
        first = [pair for pair in rest if pair[1] in front]
        order += [plan for plan, _ in sorted(first, key=lambda pair: -pair[1].accuracy)]
        rest = [pair for pair in rest if pair[1] not in front]
    return order


def undominated(plans: Sequence[ConstantPlan]) -> tuple[ConstantPlan, ...]:
    """The Pareto front: the plans that no other beats in both accuracy and cost, cheapest first."""
    undominated_plans: list[ConstantPlan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost_usd, -plan.accuracy)):
        if not undominated_plans or plan.accuracy > undominated_plans[-1].accuracy:
            undominated_plans.append(plan)
    return tuple(undominated_plans)


Rungs = Sequence[tuple[int, int]]
"""Successive halving: (plans tried, questions that each has been tried on by then)."""

FRESH = 100
"""If the search leaves at least this many questions unused, the final choice uses only these."""

SearchProgress = Callable[[int, int], None]
"""Called with (lengths searched, all lengths)."""


@dataclass(slots=True)
class _Tally:
    """The results of one plan so far."""

    tried: int = 0
    """The questions that it was run on."""
    questions: int = 0
    """Those of them on which neither a worker nor the grader failed. Only they count."""
    correct: float = 0.0
    cost_usd: float = 0.0


@dataclass(slots=True)
class Trials:
    """Runs plans on more and more of the tasks, each plan at most once on each task."""

    runner: Runner
    """Answers by any planner."""
    tasks: Sequence[Task]
    max_cost: float | None
    seed: str
    tallies: dict[Workflow, _Tally] = field(default_factory=dict)

    async def best(self, plans: Sequence[Workflow], rungs: Rungs) -> list[Workflow]:
        """Successive halving: the plans of the last rung that cost at most `max_cost`, best first.

        Raises:
            UsageError: workers or the grader failed on all questions of a plan.
        """
        for count, questions in rungs:
            for plan in plans[:count]:
                await self._run(plan, min(questions, len(self.tasks)))
            results = {plan: self.result(plan) for plan in plans[:count]}
            affordable = [
                (plan, result)
                for plan, result in results.items()
                if self.max_cost is None or result.cost_usd <= self.max_cost
            ]
            plans = rank_by_front(affordable)
        return list(plans)

    async def _run(self, plan: Workflow, questions: int) -> None:
        tally = self.tallies.setdefault(plan, _Tally())
        tasks = self.tasks[tally.tried : questions]
        if not tasks:
            return
        evaluation = await evaluate(
            replace(self.runner, planner=Constant(plan, self.runner.pool.names)),
            tasks,
            seed=f"search-constant/{self.seed}",
        )
        rollouts = [rollout for rollout in evaluation.rollouts if not rollout.infrastructure_failed]
        tally.tried += len(tasks)
        tally.questions += len(rollouts)
        tally.correct += sum(rollout.correct for rollout in rollouts)
        tally.cost_usd += sum(rollout.trace.uncached_usd for rollout in rollouts)
        if not tally.questions:
            names = ", ".join(dict.fromkeys(self.runner.pool.names[step.worker] for step in plan.steps))
            raise UsageError(
                f"Workers or the grader failed on all {tally.tried} questions of a workflow of {names}: run podium "
                "pool check, and then the same command again to continue."
            )

    def result(self, plan: Workflow) -> ConstantPlan:
        """The plan with its means so far."""
        tally = self.tallies[plan]
        return ConstantPlan(
            plan=render(plan),
            accuracy=tally.correct / tally.questions,
            cost_usd=tally.cost_usd / tally.questions,
        )
