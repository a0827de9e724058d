"""Searches for the best constant plan at each cost. A planner that uses the question must beat this control.

The search is a beam search over plans of one step, then two, and so on. At each length, successive halving (Jamieson &
Talwalkar 2016) runs all candidates on a few questions and the better ones on more. It does so twice: for the plans with
one more step, then for variants of the best of these. The result, a JSON file, has the most accurate plan found for
each cost. Its accuracies are too high, because the plans were chosen on the same questions; compare the plans on
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from podium.errors import UsageError
from podium.evals.evaluation import evaluate
from podium.evals.json_file import JsonFile
from podium.planners import VOTE, Constant, Single, read_constant
from podium.planners.phrases import COMPARE, PHRASES
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import ANSWER_WHOLE_QUESTION, FrozenModel
from podium.workers.pool import Pool
from podium.workflow import Access, Step, Workflow, render

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

RUNGS: Rungs = ((80, 16), (20, 50), (8, 140))

FRESH = 100
"""If the search leaves at least this many questions unused, the final choice uses only these."""

FINALISTS = 32
"""How many plans, of all lengths, enter the final choice."""

SearchProgress = Callable[[int, int], None]
"""Called with (lengths searched, all lengths)."""


async def search_constant(
    pool: Pool,
    tasks: Sequence[Task],
    *,
    max_steps: int = 5,
    max_cost: float | None = None,
    seed: str = "0",
    rungs: Rungs = RUNGS,
    on_progress: SearchProgress | None = None,
) -> ConstantPlanFront:
    """Search over the phrases of subtasks, the workers of the pool, and access to none or all earlier steps.

    The best plan found is a lower bound for the best that exists.

    Args:
        tasks: questions to search on; 500 are enough. Do not compare the plans on them later. The final choice uses
            questions that the search left unused: a plan that won among thousands on few questions may have been lucky.
        max_cost: dollars a question; plans that cost more are neither extended nor kept.
        rungs: the rungs of successive halving, which runs twice at each length. The default needs about 25,000 answers
            for 5 lengths.
    """
    if not tasks:
        raise UsageError("There are no tasks to search constant plans on: give at least one.")
    used = min(len(tasks), max(questions for _, questions in rungs))
    trials = Trials(
        Runner(Single(pool.names[0]), pool, max_steps=max_steps),
        tasks[:used],
        max_cost=max_cost,
        seed=seed,
    )
    moves = _Moves(pool.names)
    random = Random(f"search-constant/{seed}")
    beam: list[Workflow] = []
    finalists = [
        Workflow((Step(worker, ANSWER_WHOLE_QUESTION),))
        for worker, name in enumerate(pool.names)
        if name != VOTE
    ]
    for length in range(1, max_steps + 1):
        beam = await trials.best(_shuffled(moves.longer(beam), random), rungs)
        beam = await trials.best([*beam, *_shuffled(moves.variants(beam), random)], rungs)
        finalists += beam
        if on_progress:
            on_progress(length, max_steps)
        if not beam:
            break
    finalists = await trials.best(list(dict.fromkeys(finalists)), [(len(finalists), used)])
    fresh = tasks[used:] if len(tasks) - used >= FRESH else tasks
    final = replace(trials, tasks=fresh, tallies={})
    chosen = await final.best(finalists[:FINALISTS], [(FINALISTS, len(fresh))])
    return ConstantPlanFront(
        workers=pool.names,
        plans=undominated([final.result(workflow) for workflow in chosen]),
        max_steps=max_steps,
        questions=len(fresh),
        seed=seed,
    )


def _shuffled(plans: Iterable[Workflow], random: Random) -> list[Workflow]:
    unique = list(dict.fromkeys(plans))
    random.shuffle(unique)
    return unique


@dataclass(frozen=True, slots=True)
class _Moves:
    """The candidates that differ from a plan by one change. The last step always reads all steps before it, since the
    executor does not run steps that nothing reads.
    """

    names: tuple[str, ...]

    def steps(self, access: Access, *, last: bool) -> Iterator[Step]:
        """Each worker with each phrase. A vote only comes last, reads all, and ignores its phrase."""
        for worker, name in enumerate(self.names):
            if name != VOTE:
                yield from (Step(worker, phrase, access) for phrase in PHRASES)
            elif last and access.all:
                yield Step(worker, COMPARE, access)

    def longer(self, plans: Sequence[Workflow]) -> Iterator[Workflow]:
        """Plans with one step more: a last step that reads all, or one before the last that reads nothing.

        Without `plans`: all plans of one step.
        """
        if not plans:
            yield from (Workflow((step,)) for step in self.steps(Access(), last=True))
        for plan in plans:
            *before, last = plan.steps
            if self.names[last.worker] != VOTE:
                grown = self.steps(Access(all=True), last=True)
                yield from (Workflow((*plan.steps, step)) for step in grown)
            if last.access.all:
                parallel = self.steps(Access(), last=False)
                yield from (Workflow((*before, step, last)) for step in parallel)

    def variants(self, plans: Sequence[Workflow]) -> Iterator[Workflow]:
        """Plans with another worker, phrase or access in one step."""
        for plan in plans:
            end = len(plan.steps) - 1
            for position, step in enumerate(plan.steps):
                for other in self.steps(step.access, last=position == end):
                    if (other.worker == step.worker) != (other.subtask == step.subtask):
                        yield _with(plan, position, other)
                if 0 < position < end:
                    yield _with(plan, position, replace(step, access=Access(all=not step.access.all)))


def _with(plan: Workflow, position: int, step: Step) -> Workflow:
    return Workflow((*plan.steps[:position], step, *plan.steps[position + 1 :]))


@dataclass(slots=True)
class _Tally:
    """The results of one plan so far."""

    questions: int = 0
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
        """Successive halving: the plans of the last rung that cost at most `max_cost`, best first."""
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
        tasks = self.tasks[tally.questions : questions]
        if not tasks:
            return
        evaluation = await evaluate(
            replace(self.runner, planner=Constant(plan, self.runner.pool.names)),
            tasks,
            seed=f"search-constant/{self.seed}",
        )
        tally.questions += len(tasks)
        tally.correct += sum(rollout.correct for rollout in evaluation.rollouts)
        tally.cost_usd += sum(rollout.trace.uncached_usd for rollout in evaluation.rollouts)

    def result(self, plan: Workflow) -> ConstantPlan:
        """The plan with its means so far."""
        tally = self.tallies[plan]
        return ConstantPlan(
            plan=render(plan),
            accuracy=tally.correct / tally.questions,
            cost_usd=tally.cost_usd / tally.questions,
        )
