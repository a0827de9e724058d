"""Compares Conductors and baselines on a recording, where every method gets the same recorded answers.

The settings of baselines are chosen on training questions (`podium.ratings.answers`). Then the executor runs each
method as it runs any plan. Some baselines know a question's family or the verdicts, which no Conductor knows; their
labels say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from podium.errors import ConfigError, UsageError
from podium.evals.compare import ComparisonSettings, Entry, replays_conditioned, table_rows
from podium.evals.comparison import Comparison, ComparisonRow, adjusted, row
from podium.evals.evaluation import Evaluation, PlannerPerRepeat, rollout_seed
from podium.evals.plan_selection import (
    COST_TOLERANCE,
    VoterPrices,
    best_cascade,
    best_fixed_plan,
    best_plans_by_family,
    best_vote,
)
from podium.planner import Plan, Planner, PlanRequest
from podium.planners import VOTE, Committee, SelfConsistency, Single, open_baseline
from podium.planners.plans import rounds_of
from podium.ratings.answers import (
    Answers,
    Members,
    committee_cost,
    measurable,
    question_messages,
    read_answers,
)
from podium.workers.base import Request, Worker
from podium.workers.replay import ReplayWorker, unknown_length_warning


async def compare_recorded(
    settings: ComparisonSettings,
    conductors: Mapping[str, Planner] | None = None,
) -> Comparison:
    """Evaluate all methods on `settings.tasks`; the settings of baselines are chosen on `settings.tuning`.

    Args:
        conductors: Conductors by label. Baselines may cost at most what the first one costs, and are compared with it.
            None: only baselines are evaluated.

    Raises:
        UsageError: there are fewer than two recorded workers, or no tuning questions.
    """
    workers = measurable(settings.pool, (*settings.tuning, *settings.tasks))
    recorded = [worker for worker in workers if isinstance(worker, ReplayWorker)]
    if len(recorded) < 2 or not settings.tuning:
        raise UsageError(
            'A comparison on a recording needs two workers of kind = "replay" or more, and training questions.'
        )
    recorded_plans, not_opened = _recorded_plans(settings)
    rows: list[ComparisonRow] = []
    first: Evaluation | None = None
    simulated: list[bool] = []
    for label, conductor in (conductors or {}).items():
        evaluation = await settings.run(label, conductor)
        rows.append(row("conductor", label, evaluation, against=first))
        simulated.append(evaluation.simulated)
        first = first or evaluation
    baselines = _RecordedBaselines(
        settings=settings,
        workers=workers,
        training=await read_answers(settings.tuning, workers),
        family_of={task.question.text: str(task.facts.get("family", "")) for task in settings.tasks},
        cost_usd=None if first is None else first.cost_usd,
        early_stop=settings.execution.early_stop and settings.budget.rounds == 1,
        prices=_prices(settings, workers),
        recorded_plans=recorded_plans,
    )
    for kind, label, planner in baselines.entries():
        evaluation = await _with_rounds(settings, planner).run(label, planner)
        rows.append(row(kind, label, evaluation, against=first))
        simulated.append(evaluation.simulated)
    warning = unknown_length_warning(recorded, [task.question.text for task in settings.tasks])
    return Comparison(
        questions=len(settings.tasks),
        seed=settings.seed,
        pool=settings.pool.names,
        simulated=any(simulated),
        recorded=True,
        rows=adjusted(rows),
        conditioned=replays_conditioned(settings.pool),
        tasks=settings.tasks_name,
        max_steps=settings.max_steps,
        rounds=settings.budget.rounds,
        notes=(*settings.notes, *not_opened, *(() if warning is None else (warning,))),
    )


def _recorded_plans(settings: ComparisonSettings) -> tuple[list[Entry], list[str]]:
    """The rows of the planners whose calls `podium record --plans` recorded, and why others have none.

    One worker alone has a row in any case.
    """
    replayed = (worker.recording for worker in settings.pool if isinstance(worker, ReplayWorker))
    names = dict.fromkeys(plan for recording in replayed for plan in recording.header.plans)
    rows: list[Entry] = []
    not_opened: list[str] = []
    for name in names:
        try:
            planner = open_baseline(name, settings.pool.profiles, seed=settings.seed)
        except ConfigError as error:
            not_opened.append(f"The recorded planner {name} has no row: {error}")
            continue
        if not isinstance(planner, Single):
            rows.append(("random" if name == "random" else "other", f"{name}, as recorded", planner))
    return rows, not_opened


def _with_rounds(settings: ComparisonSettings, planner: Planner | PlannerPerRepeat) -> ComparisonSettings:
    """The same settings, with at least as many rounds as the planner needs."""
    rounds = max(rounds_of(planner), settings.budget.rounds)
    return replace(settings, budget=settings.budget.model_copy(update={"rounds": rounds}))


def _prices(settings: ComparisonSettings, workers: Sequence[Worker]) -> VoterPrices:
    """The prices by which voters are ordered on training questions."""
    names = [worker.profile.name for worker in workers]
    return VoterPrices.of_pool(settings.pool, names, [task.question.text for task in settings.tuning])


@dataclass(frozen=True)
class _RecordedBaselines:
    """The baselines of a recording, with settings that are chosen on training questions."""

    settings: ComparisonSettings
    workers: Sequence[Worker]
    training: Answers
    """The answers to training questions."""
    family_of: Mapping[str, str]
    """The family of each held-out question, by its text; empty where it is not known."""
    cost_usd: float | None
    """The most dollars a question for methods at equal cost, which is what the Conductor cost. None: no limit."""
    early_stop: bool
    """Whether a vote calls no more workers once its winner is certain, and so costs less."""
    prices: VoterPrices
    """With early stopping, the executor calls the cheapest voter first, by these prices."""
    recorded_plans: Sequence[Entry] = ()
    """Rows of the planners whose calls were recorded."""

    def entries(self) -> Iterator[Entry]:
        """All rows, in the order of the table."""
        yield self._self_consistency()
        training = self.training
        for name in training.workers:
            yield "single", f"{name} alone", Single(name)
        for weighted in (False, True):
            voters = best_vote(training, weighted=weighted)
            kind = "weighted vote" if weighted else "vote"
            yield "committee", f"Best {kind} of the best {len(voters.workers)}", voters
        fixed = best_fixed_plan(training, cost_of=self._cost_of)
        if fixed is not None:
            yield "committee", f"Best fixed plan: {_members(fixed)}", fixed
        within = (
            None
            if self.cost_usd is None
            else best_fixed_plan(training, max_cost=self.cost_usd, cost_of=self._cost_of)
        )
        if within is not None:
            yield "committee", f"Best fixed plan at equal cost: {_members(within)}", within
        cascade = best_cascade(training)
        if cascade is not None:
            label = f"{' and '.join(cascade.first)}, else {cascade.then}"
            yield "cascade", label, cascade
        if any(training.families):
            yield "chosen", "Best worker of the family (knows the family)", self._by_family()
            yield "chosen", "Best plan of the family (knows the family)", self._plan_by_family()
        yield from table_rows(self.settings, on_recordings=True)
        yield from self.recorded_plans
        oracle = PlannerPerRepeat(_Oracle.name, self._oracle)
        yield "oracle", "Oracle (a bound for one answer)", oracle

    def _oracle(self, repeat: int) -> _Oracle:
        return _Oracle(self.training.workers, self._answer_key(repeat))

    def _answer_key(self, repeat: int) -> _AnswerKey:
        return _AnswerKey(self.workers, self.settings, repeat)

    def _self_consistency(self) -> Entry:
        """The best vote of one worker with itself that `cost_usd` pays for and the recording has samples for."""
        training = self.training
        tried = []
        for w, name in enumerate(training.workers):
            most = training.samples_of(w)
            samples = (
                most
                if self.cost_usd is None
                else self._samples_within(w, most, self.cost_usd * COST_TOLERANCE)
            )
            if samples:
                tried.append(
                    (training.voted((w,) * samples).mean(), -training.cost[w] * samples, name, samples)
                )
        if not tried:  # Every worker costs more: the cheapest answers once.
            tried = [(0.0, 0.0, training.workers[int(np.argmin(training.cost))], 1)]
        _, _, name, samples = max(tried)
        return (
            "self-consistency",
            f"Self-consistency, {samples} × {name}",
            SelfConsistency(name, samples),
        )

    def _samples_within(self, worker: int, most: int, cost_usd: float) -> int:
        """How many answers of one worker, at most `most`, a vote within `cost_usd` can have."""
        votes = range(most, 0, -1)
        return next((count for count in votes if self._cost_of((worker,) * count) <= cost_usd), 0)

    def _cost_of(self, members: Members) -> float:
        """Dollars a question of a committee, averaged over training questions."""
        price_QW = self.prices.among(members)
        return float(
            committee_cost(self.training, members, early_stop=self.early_stop, price_QW=price_QW).mean()
        )

    def _by_family(self) -> _ByText:
        training = self.training
        families = np.asarray(training.families)
        best = {
            family: training.workers[int(training.score_QW[families == family].mean(axis=0).argmax())]
            for family in set(training.families)
        }
        return _ByText("by-family", lambda text: best.get(self.family_of.get(text, ""), self._overall))

    def _plan_by_family(self) -> _ByText:
        best = best_plans_by_family(self.training)
        return _ByText("plan-by-family", lambda text: best.get(self.family_of.get(text, ""), self._overall))

    @cached_property
    def _overall(self) -> str:
        return self.training.workers[int(self.training.accuracy.argmax())]


@dataclass(frozen=True, slots=True)
class _ByText:
    """Sends the whole question to the worker or committee that `rule` returns for its text."""

    tools = (VOTE,)

    name: str
    rule: Callable[[str], str | Committee]

    async def plan(self, request: PlanRequest) -> Plan:
        target = self.rule(request.question.text)
        return await (Single(target) if isinstance(target, str) else target).plan(request)


class _AnswerKey:
    """Which worker will be right on which question, and at what cost, in one repeat. No Conductor knows this."""

    def __init__(self, workers: Sequence[Worker], settings: ComparisonSettings, repeat: int) -> None:
        self._workers = {worker.profile.name: worker for worker in workers}
        self._tasks = {task.question.text: task for task in settings.tasks}
        self._seed = settings.seed
        self._repeat = repeat

    async def answer(self, request: PlanRequest, name: str) -> tuple[bool, float]:
        """Whether the worker's first answer to this request is right, and its dollars."""
        task, worker = self._tasks[request.question.text], self._workers[name]
        seed = rollout_seed(self._seed, task.id, self._repeat)
        reply = await worker.answer(
            Request(question_messages(task.question.text), seed="", question_seed=seed)
        )
        return (await task.grade(reply.text)).correct, worker.profile.price.cost(reply.usage)


class _Oracle:
    """Chooses one worker, knowing beforehand whether its answer will be right.

    A bound only for plans that call one worker once: where no worker's first answer is right, a vote or a later sample
    may be.
    """

    name = "oracle"

    def __init__(self, workers: Sequence[str], answer_key: _AnswerKey) -> None:
        self._workers = workers
        self._answer_key = answer_key

    async def plan(self, request: PlanRequest) -> Plan:
        """The cheapest worker that will be right; if none will, the cheapest."""
        answers = {name: await self._answer_key.answer(request, name) for name in self._workers}
        return await Single(max(answers, key=lambda name: (answers[name][0], -answers[name][1]))).plan(
            request
        )


def _members(committee: Committee) -> str:
    names: Sequence[str] = sorted(set(committee.workers), key=committee.workers.index)
    return ", ".join(f"{committee.workers.count(name)} × {name}" for name in names)
