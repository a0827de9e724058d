"""Evaluates the Conductor and every baseline on the same questions.

Self-consistency and the constant plan may cost at most what the Conductor costs. Their settings (which worker, how many
samples, which plan) are chosen on tuning questions, never on those of the comparison. Every single worker has a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from podium.evals.comparison import BeforeAfter, Comparison, ComparisonRow, Kind, adjusted, example, row
from podium.evals.constant_search import ConstantPlanFront, search_constant
from podium.evals.evaluation import Evaluation, PlannerPerRepeat, evaluate
from podium.evals.plan_selection import COST_TOLERANCE
from podium.evals.routing import ALIGNMENTS, routing, steps_by_hops
from podium.executor import Dispatcher, ExecutionSettings
from podium.planner import Planner
from podium.planners import VOTE, SelfConsistency, Single, known_baselines, open_baseline
from podium.planners.plans import tools_of
from podium.tasks.task import Task
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workers.vote import VoteWorker

MAX_SAMPLES = 15
"""The most answers of a self-consistency vote, however cheap the worker is."""
SECOND_CONDUCTOR = "Conductor, second"
"""The label of a second Conductor."""

CompareProgress = Callable[[str, int, int], None]
"""Called with (label of the method that runs, rollouts done, all rollouts)."""
Entry = tuple[Kind, str, Planner | PlannerPerRepeat]
"""A row before its evaluation: its kind, its label, and the planner to run."""


@dataclass(frozen=True)
class ComparisonSettings:
    """The settings that all methods of a comparison share."""

    pool: Pool
    tasks: Sequence[Task]
    """Held-out questions."""
    tuning: Sequence[Task] = ()
    """Questions on which the settings of baselines are chosen, none of them in `tasks`. Without any, self-consistency
    uses the best single worker on `tasks`, which overstates its accuracy, and no constant plan is searched."""
    repeats: int = 1
    concurrency: int = 16
    seed: str = "0"
    max_steps: int = 5
    """For planners that choose their number of steps; self-consistency is limited only by cost."""
    budget: Budget = field(default_factory=Budget)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    dispatcher: Dispatcher | None = None
    """Has the response cache and the accounts that all methods share; None: there are none."""
    on_progress: CompareProgress | None = None
    notes: tuple[str, ...] = ()
    """Which questions were left out, one sentence for each reason."""
    tasks_name: str = ""
    """Task set and split of the questions, such as mine/validation; empty: not known."""

    async def run(
        self, label: str, planner: Planner | PlannerPerRepeat, tasks: Sequence[Task] | None = None
    ) -> Evaluation:
        """Evaluate `planner` with these settings, on `tasks` or else on the comparison's."""
        report = self.on_progress
        return await evaluate(
            planner,
            self.tasks if tasks is None else tasks,
            # For planners that vote, a pool without a voting worker gets one.
            _with_vote(self.pool) if VOTE in tools_of(planner) else self.pool,
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
    settings: ComparisonSettings,
    conductor: Planner,
    *,
    label: str = "Conductor",
    versus: Planner | None = None,
    versus_label: str = SECOND_CONDUCTOR,
    untrained: Planner | None = None,
    constant_plans: ConstantPlanFront | None = None,
) -> Comparison:
    """Evaluate all methods.

    Args:
        conductor: the trained planner; self-consistency and the constant plan may cost at most what it costs.
        versus: a second Conductor, which gets a row of its own.
        label, versus_label: the labels of these two rows.
        untrained: the planner before training.
        constant_plans: the result of an earlier search for this pool; None: search on the tuning questions.
    """
    trained = await settings.run(label, conductor)
    rows = [row("conductor", label, trained)]
    simulated, recorded = [trained.simulated], [trained.recorded]

    async def add(kind: Kind, label: str, planner: Planner | PlannerPerRepeat) -> Evaluation:
        evaluation = await settings.run(label, planner)
        rows.append(row(kind, label, evaluation, against=trained))
        simulated.append(evaluation.simulated)
        recorded.append(evaluation.recorded)
        return evaluation

    if versus is not None:
        await add("conductor", versus_label, versus)
    before = await add("untrained", "Conductor, untrained", untrained) if untrained else None
    baselines = len(rows)
    for worker in settings.pool.names:
        if worker != VOTE:
            await add("single", f"{worker} alone", Single(worker))
    chosen = await _self_consistency(settings, [r for r in rows if r.kind == "single"], trained.cost_usd)
    if chosen is not None:
        label = f"Self-consistency, {chosen.samples} × {chosen.worker}"
        await add("self-consistency", label, chosen)
        # Choosing it needs the rows of the single workers, but its own row comes before them.
        rows.insert(baselines, rows.pop())
    if constant_plans is None and settings.tuning:
        constant_plans = await _searched(settings, trained.cost_usd)
    constant = constant_plans.within(trained.cost_usd) if constant_plans else None
    if constant is not None:
        await add("constant", "Best constant plan", constant)
    for kind, label, planner in table_rows(settings):
        await add(kind, label, planner)
    return Comparison(
        questions=len(settings.tasks),
        seed=settings.seed,
        pool=settings.pool.names,
        simulated=any(simulated),
        recorded=any(recorded),
        rows=adjusted(rows),
        conditioned=replays_conditioned(settings.pool),
        tasks=settings.tasks_name,
        max_steps=settings.max_steps,
        rounds=settings.budget.rounds,
        notes=settings.notes,
        routing=tuple(routing(trained, alignment=alignment, seed=settings.seed) for alignment in ALIGNMENTS),
        steps_by_hops=steps_by_hops(trained, seed=settings.seed),
        examples=_examples(settings.tasks, trained, before),
    )


def replays_conditioned(pool: Pool) -> bool:
    """Whether a recording of the pool's workers has responses to other answers."""
    return any(isinstance(worker, ReplayWorker) and worker.recording.conditioned for worker in pool)


def table_rows(settings: ComparisonSettings, *, on_recordings: bool = False) -> Iterator[Entry]:
    """The rows that registered baselines add to every comparison, including the baselines of other packages."""
    workers = [name for name in settings.pool.names if name != VOTE]
    for baseline in known_baselines().values():
        if on_recordings and not baseline.on_recordings:
            continue
        kind: Kind = "random" if baseline.name == "random" else "other"
        for label, name in baseline.rows(workers):
            yield kind, label, open_baseline(name, settings.pool.profiles, seed=settings.seed)


def samples_within(cost_usd: float, single_usd: float) -> int:
    """How many answers of a worker `cost_usd` pays for, from 0 to `MAX_SAMPLES`."""
    if single_usd <= 0:
        return MAX_SAMPLES
    return min(MAX_SAMPLES, int(cost_usd / single_usd * COST_TOLERANCE))


async def _self_consistency(
    settings: ComparisonSettings, singles: Sequence[ComparisonRow], cost_usd: float
) -> SelfConsistency | None:
    """The best vote of one worker with itself, with as many samples as `cost_usd` pays for; None: not even one."""
    workers = [name for name in settings.pool.names if name != VOTE]
    priced = zip(workers, singles, strict=True)
    votes = [
        (SelfConsistency(worker, samples), single.accuracy.mean)
        for worker, single in priced
        if (samples := samples_within(cost_usd, single.cost_usd)) > 0
    ]
    if not votes:
        return None
    if not settings.tuning:
        return max(votes, key=lambda vote: vote[1])[0]
    tuned = [
        (vote, (await settings.run(f"Choosing {vote.name}", vote, settings.tuning)).accuracy.mean)
        for vote, _ in votes
    ]
    return max(tuned, key=lambda vote: vote[1])[0]


async def _searched(settings: ComparisonSettings, cost_usd: float) -> ConstantPlanFront:
    report = settings.on_progress
    return await search_constant(
        settings.pool,
        settings.tuning,
        max_steps=settings.max_steps,
        max_cost=cost_usd,
        seed=settings.seed,
        budget=settings.budget,
        execution=settings.execution,
        dispatcher=settings.dispatcher,
        on_progress=report and (lambda done, total: report("Searching constant plans", done, total)),
    )


def _with_vote(pool: Pool) -> Pool:
    return pool if VOTE in pool.names else Pool([*pool, VoteWorker(VOTE)], pool.ratings, secrets=pool.secrets)


def _examples(tasks: Sequence[Task], after: Evaluation, before: Evaluation | None) -> tuple[BeforeAfter, ...]:
    """The first question of each number of hops."""
    first: dict[object, Task] = {}
    for task in tasks:
        first.setdefault(task.facts.get("hops"), task)
    examples = [
        example(task, after.by_question[task.id][0], before.by_question[task.id][0] if before else None)
        for task in first.values()
    ]
    return tuple(sorted(examples, key=lambda shown: shown.hops))
