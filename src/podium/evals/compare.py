"""Evaluates the Conductor and every baseline on the same questions, within the Conductor's cost.

Where a baseline has a choice (whose answers to vote on, which constant plan), it is made on tuning questions:
no method is chosen on what it is then compared on. Single workers are all shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podium.baselines import (
    VOTE,
    Cascade,
    Chosen,
    Committee,
    Oracle,
    PlanFor,
    RandomPlans,
    SelfConsistency,
    Single,
)
from podium.evals.choices import HAIR
from podium.evals.comparison import Comparison, Example, Kind, Row, example, row
from podium.evals.evaluation import Evaluation, evaluate
from podium.evals.frontier import Frontier
from podium.evals.routing import ALIGNMENTS, routing, steps_by_hops
from podium.evals.search import search_constant
from podium.executor import Dispatcher, ExecutionSettings
from podium.planner import Planner
from podium.tasks.task import Task
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.vote import VoteWorker

MOST_SAMPLES = 15
"""Votes are taken of at most so many answers, however cheap a worker is."""
BESIDE = "Conductor beside"
"""The label of a second Conductor."""

CompareProgress = Callable[[str, int, int], None]
"""Told of (what is being evaluated, done, in all)."""


@dataclass(frozen=True)
class ComparisonSettings:
    """The conditions that all methods share."""

    pool: Pool
    tasks: Sequence[Task]
    """Held-out questions."""
    tuning: Sequence[Task] = ()
    """Questions on which baselines make their choices, apart from `tasks`. Without any, self-consistency is
    that of the best single worker on `tasks` (which flatters it), and no constant plan is searched."""
    repeats: int = 1
    concurrency: int = 16
    seed: str = "0"
    max_steps: int = 5
    """For planners that choose how many; self-consistency is limited by cost alone."""
    budget: Budget = field(default_factory=Budget)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    dispatcher: Dispatcher | None = None
    """What their calls share besides limits: a response cache, accounts of money. None: nothing."""
    on_progress: CompareProgress | None = None
    notes: tuple[str, ...] = ()
    """What was left out of the questions, a sentence each."""
    called: str = ""
    """Set and split of the questions, as in mine/validation; empty: not told."""

    async def run(self, label: str, planner: Planner, tasks: Sequence[Task] | None = None) -> Evaluation:
        """Evaluate `planner` under these conditions."""
        report = self.on_progress
        return await evaluate(
            planner,
            self.tasks if tasks is None else tasks,
            # A pool that cannot vote is lent the tool for the baselines that need it.
            _voting(self.pool)
            if isinstance(planner, SelfConsistency | Committee | Cascade | Chosen)
            else self.pool,
            repeats=self.repeats,
            concurrency=self.concurrency,
            seed=self.seed,
            budget=self.budget,
            max_steps=self.max_steps,
            execution=self.execution,
            dispatcher=self.dispatcher,
            on_progress=report and (lambda done, total: report(label, done, total)),
        )


async def compare(
    contest: ComparisonSettings,
    conductor: Planner,
    *,
    label: str = "Conductor",
    beside: Planner | None = None,
    beside_label: str = BESIDE,
    untrained: Planner | None = None,
    oracle: PlanFor | None = None,
    frontier: Frontier | None = None,
) -> Comparison:
    """Measure all methods.

    Args:
        conductor: the trained planner; its cost is the limit of self-consistency and of the constant plan.
        beside: another one, for comparison.
        label, beside_label: of their rows.
        untrained: the planner before training.
        oracle: what the tasks know of the best plan, where they do.
        frontier: constant plans found earlier for this pool; without it they are searched for on the tuning
            questions.
    """
    trained = await contest.run(label, conductor)
    rows = [row("conductor", label, trained)]
    simulated, recorded = [trained.simulated], [trained.recorded]

    async def add(kind: Kind, label: str, planner: Planner) -> Evaluation:
        evaluation = await contest.run(label, planner)
        rows.append(row(kind, label, evaluation, against=trained))
        simulated.append(evaluation.simulated)
        recorded.append(evaluation.recorded)
        return evaluation

    if beside is not None:
        await add("conductor", beside_label, beside)
    before = await add("untrained", "Conductor, untrained", untrained) if untrained else None
    baselines = len(rows)
    for worker in contest.pool.names:
        if worker != VOTE:
            await add("single", f"{worker} alone", Single(worker))
    chosen = await _self_consistency(contest, [r for r in rows if r.kind == "single"], trained.cost_usd)
    if chosen is not None:
        label = f"Self-consistency, {chosen.samples} × {chosen.worker}"
        await add("self-consistency", label, chosen)
        # The first baseline of every table, though it is chosen by the others.
        rows.insert(baselines, rows.pop())
    if frontier is None and contest.tuning:
        frontier = await _searched(contest, trained.cost_usd)
    constant = frontier.within(trained.cost_usd) if frontier else None
    if constant is not None:
        await add("constant", "Best constant plan", constant)
    await add("random", "Random plans", RandomPlans(seed=contest.seed))
    if oracle is not None:
        await add("oracle", "Oracle (a bound)", Oracle(oracle))
    return Comparison(
        questions=len(contest.tasks),
        seed=contest.seed,
        pool=contest.pool.names,
        simulated=any(simulated),
        recorded=any(recorded),
        rows=tuple(rows),
        tasks=contest.called,
        max_steps=contest.max_steps,
        rounds=contest.budget.rounds,
        notes=contest.notes,
        routing=tuple(routing(trained, alignment=alignment, seed=contest.seed) for alignment in ALIGNMENTS),
        steps_by_hops=steps_by_hops(trained, seed=contest.seed),
        examples=_examples(contest.tasks, trained, before),
    )


def samples_within(cost_usd: float, single_usd: float) -> int:
    """How many answers of a worker a budget buys, from 0 to `MOST_SAMPLES`."""
    if single_usd <= 0:
        return MOST_SAMPLES
    return min(MOST_SAMPLES, int(cost_usd / single_usd * HAIR))


async def _self_consistency(
    contest: ComparisonSettings, singles: Sequence[Row], cost_usd: float
) -> SelfConsistency | None:
    """The best vote that the cost buys: as many answers of each worker as it can, then the best worker."""
    workers = [name for name in contest.pool.names if name != VOTE]
    priced = zip(workers, singles, strict=True)
    votes = [
        (SelfConsistency(worker, samples), single.accuracy.mean)
        for worker, single in priced
        if (samples := samples_within(cost_usd, single.cost_usd)) > 0
    ]
    if not votes:
        return None
    if not contest.tuning:
        return max(votes, key=lambda vote: vote[1])[0]
    tuned = [
        (vote, (await contest.run(f"Choosing {vote.name}", vote, contest.tuning)).accuracy.mean)
        for vote, _ in votes
    ]
    return max(tuned, key=lambda vote: vote[1])[0]


async def _searched(contest: ComparisonSettings, cost_usd: float) -> Frontier:
    report = contest.on_progress
    return await search_constant(
        contest.pool,
        contest.tuning,
        max_steps=contest.max_steps,
        max_cost=cost_usd,
        seed=contest.seed,
        budget=contest.budget,
        execution=contest.execution,
        dispatcher=contest.dispatcher,
        on_progress=report and (lambda done, total: report("Searching constant plans", done, total)),
    )


def _voting(pool: Pool) -> Pool:
    return pool if VOTE in pool.names else Pool([*pool, VoteWorker(VOTE)], pool.ratings)


def _examples(tasks: Sequence[Task], after: Evaluation, before: Evaluation | None) -> tuple[Example, ...]:
    """The first question of each number of hops."""
    first: dict[object, Task] = {}
    for task in tasks:
        first.setdefault(task.facts.get("hops"), task)
    examples = [
        example(task, after.by_question[task.id][0], before.by_question[task.id][0] if before else None)
        for task in first.values()
    ]
    return tuple(sorted(examples, key=lambda shown: shown.hops))
