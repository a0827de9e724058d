"""Searches for the best constant plan at each cost: the control that routing by question must beat.

Plans grow from one step to many. At each length, growths and then variants of the best are thinned by
successive halving: all on few questions, the better on more (Jamieson & Talwalkar 2016). The result is one JSON
file: for each cost the most accurate plan that was found. Its accuracies flatter, since the plans were chosen on
the same questions: compare a plan on others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from podium.baselines import VOTE, Constant, read_constant
from podium.baselines.phrases import COMPARE, PHRASES, WHOLE
from podium.errors import UsageError
from podium.evals.evaluation import evaluate
from podium.evals.json_file import JsonFile
from podium.executor import Dispatcher, ExecutionSettings
from podium.tasks.task import Task
from podium.types import Budget, Value
from podium.workers.pool import Pool
from podium.workflow import Access, Step, Workflow, render

T = TypeVar("T")


class ConstantPlan(Value):
    """One workflow for every question, and how it did."""

    plan: str
    """The workflow's text, numbered as the front's workers are."""
    accuracy: float
    cost_usd: float
    """Dollars a question, on average."""


class ConstantPlanFront(JsonFile):
    """The plans that no other plan beats in both accuracy and cost, cheapest first."""

    description = "constant plans"

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


def rank_by_front(plans: Sequence[tuple[T, ConstantPlan]]) -> list[T]:
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


Rungs = Sequence[tuple[int, int]]
"""Successive halving: (plans tried, questions that each has been tried on by then)."""

RUNGS: Rungs = ((80, 16), (20, 50), (8, 140))

FRESH = 100
"""With so many questions to spare, the last choice is made on those alone that the search has not used."""

FINALISTS = 32
"""Plans of all lengths among which the last choice is made."""

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
    budget: Budget | None = None,
    execution: ExecutionSettings | None = None,
    dispatcher: Dispatcher | None = None,
    on_progress: SearchProgress | None = None,
) -> ConstantPlanFront:
    """Search over the phrase book, the pool's workers and access to none or all earlier steps.

    Args:
        tasks: questions to search on, apart from those that plans are then compared on; 500 are good. The
            last choice is made on those that the search left over: a plan that won among thousands on few
            questions owes much of it to luck.
        max_cost: dollars a question; plans that cost more are neither grown nor kept.
        rungs: how hard to look, twice at each length. The default takes about 25,000 answers for 5 lengths.
        budget, execution, dispatcher: as `evaluate`'s. Votes that may stop early do so in the last round alone, so
            what a plan costs depends on how many the budget has.

    The best plan found is a lower bound of the best there is.
    """
    if not tasks:
        raise UsageError("There are no tasks to search constant plans on: give at least one.")
    used = min(len(tasks), max(questions for _, questions in rungs))
    trials = _Trials(
        pool,
        tasks[:used],
        max_steps=max_steps,
        max_cost=max_cost,
        seed=seed,
        budget=budget,
        execution=execution,
        dispatcher=dispatcher,
    )
    moves = _Moves(pool.names)
    random = Random(f"search-constant/{seed}")
    beam: list[Workflow] = []
    finalists = [Workflow((Step(worker, WHOLE),)) for worker, name in enumerate(pool.names) if name != VOTE]
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
    """The plans next to a plan. The last step reads all: else those before it would not be run."""

    names: tuple[str, ...]

    def steps(self, access: Access, *, last: bool) -> Iterator[Step]:
        """Every worker with every phrase. A vote comes last and reads all; its phrase says nothing to it."""
        for worker, name in enumerate(self.names):
            if name != VOTE:
                yield from (Step(worker, phrase, access) for phrase in PHRASES)
            elif last and access.all:
                yield Step(worker, COMPARE, access)

    def longer(self, plans: Sequence[Workflow]) -> Iterator[Workflow]:
        """One step more: at the end, reading all, or before the end, reading nothing. From none: one step."""
        if not plans:
            yield from (Workflow((step,)) for step in self.steps(Access(), last=True))
        for plan in plans:
            *before, last = plan.steps
            if self.names[last.worker] != VOTE:
                grown = self.steps(Access(all=True), last=True)
                yield from (Workflow((*plan.steps, step)) for step in grown)
            if last.access.all:
                beside = self.steps(Access(), last=False)
                yield from (Workflow((*before, step, last)) for step in beside)

    def variants(self, plans: Sequence[Workflow]) -> Iterator[Workflow]:
        """One step's worker, phrase or access changed."""
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
    """What is known of one plan so far."""

    questions: int = 0
    correct: float = 0.0
    cost_usd: float = 0.0


@dataclass(slots=True)
class _Trials:
    """Runs plans on the first so many tasks, and never twice on the same."""

    pool: Pool
    tasks: Sequence[Task]
    max_steps: int
    max_cost: float | None
    seed: str
    budget: Budget | None
    execution: ExecutionSettings | None
    dispatcher: Dispatcher | None
    tallies: dict[Workflow, _Tally] = field(default_factory=dict)

    async def best(self, plans: Sequence[Workflow], rungs: Rungs) -> list[Workflow]:
        """Successive halving: what is left on the last rung and can be afforded, best first."""
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
            Constant(plan, self.pool.names),
            tasks,
            self.pool,
            seed=f"search-constant/{self.seed}",
            budget=self.budget,
            max_steps=self.max_steps,
            execution=self.execution,
            dispatcher=self.dispatcher,
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
