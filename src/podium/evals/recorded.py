"""Compares planners on a recording: what choosing, combining and stopping are worth with these very answers.

Every choice is made on training questions (`answers`), and every row is then run like any other plan, on the one
executor. Baselines that are told a question's family, or verdicts, know more than a Conductor; their labels say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from podium.baselines import Cascade, Chosen, Committee, SelfConsistency, Single
from podium.baselines.encoder import Encoded, Encoder
from podium.baselines.learned import Method, learn_router
from podium.baselines.linucb import LinUCB
from podium.errors import UsageError
from podium.evals.choices import HAIR, best_cascade, best_fixed, best_of_most
from podium.evals.compare import ComparisonSettings
from podium.evals.comparison import Comparison, Kind, Row, row
from podium.evals.evaluation import Evaluation
from podium.evals.families import best_plans
from podium.evals.prices import Prices
from podium.planner import Plan, Planner, PlanRequest
from podium.ratings.answers import Answers, Members, bare, measurable, read_answers, spent
from podium.tasks.task import Task
from podium.workers.base import Request, Worker
from podium.workers.replay import ReplayWorker, blind_charges

Entry = tuple[Kind, str, Planner]

_LEARNED: Mapping[Method, str] = {
    "ridge": "Ridge over n-grams, best worker",
    "neighbours": "20 nearest questions, best worker",
}
_LEARNED_OVER: Mapping[Method, str] = {
    "ridge": "Ridge over {}, best worker",
    "neighbours": "20 nearest questions over {}, best worker",
}


async def compare_recorded(
    contest: ComparisonSettings,
    conductors: Mapping[str, Planner] | None = None,
    *,
    encoder: Encoder | None = None,
) -> Comparison:
    """Measure all methods on `contest.tasks`, their choices made on `contest.tuning`.

    Args:
        conductors: planners by label; the others are compared with the first, at its cost. None: they are shown alone.
        encoder: routers are learned over it too; None: over n-grams alone.

    Raises:
        UsageError: fewer than two recorded workers, or nothing to tune on.
        WorkerError: the encoder failed.
    """
    recorded = [worker for worker in contest.pool if isinstance(worker, ReplayWorker)]
    workers = measurable(contest.pool, (*contest.tuning, *contest.tasks))
    if len(recorded) < 2 or not contest.tuning:
        raise UsageError(
            'A comparison on a recording needs two workers of kind = "replay" or more, and training questions.'
        )
    encoded = None if encoder is None else await _encoded(contest, encoder)
    rows: list[Row] = []
    first: Evaluation | None = None
    simulated: list[bool] = []
    for label, conductor in (conductors or {}).items():
        evaluation = await contest.run(label, conductor)
        rows.append(row("conductor", label, evaluation, against=first, tested=True))
        simulated.append(evaluation.simulated)
        first = first or evaluation
    field = _Field(
        known=await read_answers(contest.tuning, workers),
        family_of={task.question.text: str(task.facts.get("family", "")) for task in contest.tasks},
        cost_usd=None if first is None else first.cost_usd,
        told=_Told(workers, contest.tasks),
        early_stop=contest.execution.early_stop and contest.budget.rounds == 1,
        prices=_prices(contest, workers),
        encoded=encoded,
    )
    two_rounds = replace(
        contest, budget=contest.budget.model_copy(update={"rounds": max(2, contest.budget.rounds)})
    )
    for kind, label, planner in field.entries():
        evaluation = await (two_rounds if isinstance(planner, Cascade) else contest).run(label, planner)
        rows.append(row(kind, label, evaluation, against=first, tested=True))
        simulated.append(evaluation.simulated)
    blind = blind_charges(recorded, [task.question.text for task in contest.tasks])
    return Comparison(
        questions=len(contest.tasks),
        seed=contest.seed,
        pool=contest.pool.names,
        simulated=any(simulated) or any(worker.simulated for worker in recorded),
        recorded=True,
        rows=tuple(rows),
        tasks=contest.called,
        max_steps=contest.max_steps,
        rounds=contest.budget.rounds,
        notes=contest.notes if blind is None else (*contest.notes, blind),
    )


def _prices(contest: ComparisonSettings, workers: Sequence[Worker]) -> Prices:
    """Of answers to training questions."""
    places = [contest.pool.names.index(worker.profile.name) for worker in workers]
    told = (contest.pool.profiles_for(task.question.text) for task in contest.tuning)
    return Prices.told([[profiles[place] for place in places] for profiles in told])


async def _encoded(contest: ComparisonSettings, encoder: Encoder) -> Encoded:
    report = contest.on_progress
    return await encoder.encode(
        (task.question.text for task in (*contest.tuning, *contest.tasks)),
        report and (lambda done, total: report(f"Encoding with {encoder.model}", done, total)),
    )


@dataclass(frozen=True)
class _Field:
    """The baselines, with their choices made."""

    known: Answers
    """Of training questions: choices are made on them."""
    family_of: Mapping[str, str]
    """Of the questions compared on, by text; empty where unknown."""
    cost_usd: float | None
    """Dollars a question that a method may cost where it is held to the Conductor's; None: no limit."""
    told: _Told
    early_stop: bool
    """Whether votes stop once they are certain, and so cost less."""
    prices: Prices
    """By which the cheapest is asked first then."""
    encoded: Encoded | None = None
    """All questions by an encoder; None: there is none."""

    def entries(self) -> Iterator[Entry]:
        """All of them, in the order of the table."""
        yield self._self_consistency()
        known = self.known
        for name in known.workers:
            yield "single", f"{name} alone", Single(name)
        for weighted in (False, True):
            voters = best_of_most(known, weighted=weighted)
            kind = "weighted vote" if weighted else "vote"
            yield "committee", f"Best {kind} of the best {len(voters.workers)}", voters
        fixed = best_fixed(known, cost_of=self._cost_of)
        if fixed is not None:
            yield "committee", f"Best fixed plan: {_members(fixed)}", fixed
        within = (
            None
            if self.cost_usd is None
            else best_fixed(known, max_cost=self.cost_usd, cost_of=self._cost_of)
        )
        if within is not None:
            yield "committee", f"Best fixed plan at equal cost: {_members(within)}", within
        cascade = best_cascade(known)
        if cascade is not None:
            label = f"{' and '.join(cascade.first)}, else {cascade.then}"
            yield "cascade", label, cascade
        if any(known.families):
            yield "chosen", "Best worker of the family (told the family)", self._by_family()
            yield "chosen", "Best plan of the family (told the family)", self._plan_by_family()
        yield from self._learned()
        yield "bandit", "LinUCB (told verdicts as it goes)", _Bandits(known.workers, self.told)
        yield "oracle", "Oracle (a bound for one answer)", _Oracle(known.workers, self.told)

    def _learned(self) -> Iterator[Entry]:
        """Routers over n-grams, and over the encoder."""
        known, encoded = self.known, self.encoded
        for method, label in _LEARNED.items():
            choose = learn_router(method, known.texts, known.score_QW, known.workers)
            yield "chosen", label, Chosen(method, choose)
        if encoded is None:
            return
        for method, label in _LEARNED_OVER.items():
            choose = learn_router(method, known.texts, known.score_QW, known.workers, vectors=encoded.vectors)
            yield "chosen", label.format(encoded.model), Chosen(f"{method}:{encoded.model}", choose)

    def _self_consistency(self) -> Entry:
        """The best vote of one worker with itself that the cost buys and the recording has samples of it for."""
        known = self.known
        tried = []
        for w, name in enumerate(known.workers):
            most = known.samples_of(w)
            samples = most if self.cost_usd is None else self._bought(w, most, self.cost_usd * HAIR)
            if samples:
                tried.append((known.voted((w,) * samples).mean(), -known.cost[w] * samples, name, samples))
        if not tried:  # Nobody is as cheap: then the cheapest, once.
            tried = [(0.0, 0.0, known.workers[int(np.argmin(known.cost))], 1)]
        _, _, name, samples = max(tried)
        return (
            "self-consistency",
            f"Self-consistency, {samples} × {name}",
            SelfConsistency(name, samples),
        )

    def _bought(self, worker: int, most: int, cost_usd: float) -> int:
        """How many answers of a worker to vote on `cost_usd` buys, at most `most`."""
        votes = range(most, 0, -1)
        return next((count for count in votes if self._cost_of((worker,) * count) <= cost_usd), 0)

    def _cost_of(self, members: Members) -> float:
        """Dollars a question of a committee, in the mean of training questions."""
        price_QW = self.prices.among(members)
        return float(spent(self.known, members, early_stop=self.early_stop, price_QW=price_QW).mean())

    def _by_family(self) -> Chosen:
        known = self.known
        families = np.asarray(known.families)
        best = {
            family: known.workers[int(known.score_QW[families == family].mean(axis=0).argmax())]
            for family in set(known.families)
        }
        return Chosen("by-family", lambda text: best.get(self.family_of.get(text, ""), self._overall))

    def _plan_by_family(self) -> Chosen:
        best = best_plans(self.known)
        return Chosen("plan-by-family", lambda text: best.get(self.family_of.get(text, ""), self._overall))

    @cached_property
    def _overall(self) -> str:
        return self.known.workers[int(self.known.accuracy.argmax())]


class _Told:
    """What workers are about to answer, and whether it is right: no planner of ours is told so much."""

    def __init__(self, workers: Sequence[Worker], tasks: Sequence[Task]) -> None:
        self._workers = {worker.profile.name: worker for worker in workers}
        self._tasks = {task.question.text: task for task in tasks}

    async def answer(self, request: PlanRequest, name: str) -> tuple[bool, float]:
        """Whether the worker's first answer in this situation is right, and its dollars."""
        text, worker = request.question.text, self._workers[name]
        reply = await worker.answer(Request(bare(text), seed="", question_seed=_question_seed(request)))
        return (await self._tasks[text].grade(reply.text)).correct, worker.profile.price.cost(reply.usage)

    async def verdict(self, request: PlanRequest, name: str) -> float:
        """How right it is."""
        return float((await self.answer(request, name))[0])


class _Bandits:
    """A bandit for each repeat of the questions: one that were asked them again would know their verdicts."""

    name = LinUCB.name

    def __init__(self, workers: Sequence[str], told: _Told) -> None:
        self._workers = workers
        self._told = told
        self._of_repeat: dict[str, LinUCB] = {}

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan of the repeat's own."""
        repeat = _question_seed(request).rpartition("/")[2]  # as `evaluate` names its questions
        bandit = self._of_repeat.setdefault(repeat, LinUCB(self._workers, self._told.verdict))
        return await bandit.plan(request)


class _Oracle:
    """Told whether each worker's first answer, the very one that it is about to give, is right.

    A bound for plans that ask one worker once: a vote, or a worker's later samples, may be right where no first
    answer is.
    """

    name = "oracle"

    def __init__(self, workers: Sequence[str], told: _Told) -> None:
        self._workers = workers
        self._told = told

    async def plan(self, request: PlanRequest) -> Plan:
        """The cheapest of those who are right; if nobody is, the cheapest."""
        known = {name: await self._told.answer(request, name) for name in self._workers}
        return await Single(max(known, key=lambda name: (known[name][0], -known[name][1]))).plan(request)


def _question_seed(request: PlanRequest) -> str:
    """The seed of the question, from that of the plan, as the orchestrator makes it."""
    return request.seed.rsplit("/", 2)[0]


def _members(committee: Committee) -> str:
    names: Sequence[str] = sorted(set(committee.workers), key=committee.workers.index)
    return ", ".join(f"{committee.workers.count(name)} × {name}" for name in names)
