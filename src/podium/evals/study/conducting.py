"""Measures Conductors by really running their plans: the pool's own without and with ratings in its prompt, and a
trained one.

Their plans rewrite subtasks and let workers read one another. So planner and workers are called and paid, within what
the budget has left; only a step that asks the bare question finds its answer in the response cache. A Conductor's
ratings of a question come from other questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from podium.calls import Dispatcher
from podium.errors import BudgetError, UsageError
from podium.evals.evaluation import Evaluation, evaluate
from podium.evals.ratings.answers import select
from podium.evals.study.answering import StudyAnswers
from podium.evals.study.crossfit import MethodResult, folds_of, others
from podium.evals.study.decision import FEWEST
from podium.evals.study.methods import TrainingAnswers
from podium.rollout import Rollout
from podium.tasks import Task
from podium.team.opened_planner import OpenedPlanner, open_planner
from podium.team.settings import PlannerChoice, PlanTable, TeamSettings
from podium.workers.pool import Pool
from podium.workers.ratings import Ratings
from podium.workers.replay import ReplayWorker
from podium.workers.traits import is_tool
from podium.workers.vote import VOTE, VoteWorker

PLAIN = "Conductor"
READING = "Conductor that reads ratings"
TRAINED = "trained Conductor that reads ratings"

OnConductor = Callable[[str, int, int], None]
"""Called with (name of the Conductor, questions done, all)."""


@dataclass(frozen=True)
class ConductorResults:
    """The Conductors that were measured, and why others were not."""

    measured: tuple[MethodResult, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Conductor:
    """A Conductor that is to be measured."""

    name: str
    opened: OpenedPlanner
    pool_for: Callable[[Task], Pool]
    """The workers of a question, with their ratings if its prompt has any."""
    tasks: Sequence[Task]
    early_stop: bool = False


def with_conductor(team: TeamSettings) -> TeamSettings:
    """The team with its Conductor as planner, whatever plans for it."""
    return team.with_planner(PlannerChoice())


def why_no_conductor(team: TeamSettings, pool: Pool) -> str:
    """Why no worker of the pool can plan for this study, in a sentence; empty: one can."""
    models = [worker for worker in pool if not is_tool(worker)]
    if all(isinstance(worker, ReplayWorker) for worker in models):
        return (
            "The Conductor is left out: all workers are recorded, and a recording has no answers to subtasks that a "
            "plan writes."
        )
    try:
        open_planner(with_conductor(team), pool, seed="study")
    except UsageError as error:
        return f"The Conductor is left out: {error}"
    return ""


@dataclass(frozen=True)
class ConductorStudy:
    """Runs Conductors on the questions that the workers answered."""

    team: TeamSettings
    """Says which Conductor plans."""
    pool: Pool
    known: StudyAnswers
    """The workers' own answers; ratings of a question are made of the other folds' answers."""
    dispatcher: Dispatcher
    """Its spend limits end the run where the budget does; its cache keeps what was paid."""
    concurrency: int
    seed: str

    async def run(self, *, count: int, checkpoint: str | None, on_progress: OnConductor) -> ConductorResults:
        """Run the pool's Conductor twice, without and with ratings, and then a trained one.

        Args:
            count: how many questions the pool's Conductor gets; 0: it is not run.
            checkpoint: the trained Conductor, which gets all questions; None: there is none.

        Raises:
            UsageError: the checkpoint cannot be opened, or must not conduct this pool.
        """
        measured: list[MethodResult] = []
        notes: list[str] = []
        for conductor in self._conductors(count, checkpoint):
            found = await self._run(conductor, on_progress)
            runs = len(found.rollouts)
            if runs < min(FEWEST, len(conductor.tasks)):
                notes.append(f"The {conductor.name} is left out: the budget ended after {runs} questions.")
            else:
                measured.append(self._measured(conductor, found))
        return ConductorResults(tuple(measured), tuple(notes))

    def _conductors(self, count: int, checkpoint: str | None) -> Iterator[_Conductor]:
        """Opens each when its turn comes."""
        pool, known = self.pool, self.known
        if count:
            # With ratings of its own, ratings would choose instead of a Conductor.
            voting = _rated(pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), None)
            pools = {PLAIN: lambda task: voting, READING: self._rated_by_fold(voting)}
            for name, pool_for in pools.items():
                opened = open_planner(
                    with_conductor(self.team), voting, seed="study", dispatcher=self.dispatcher
                )
                yield _Conductor(name, opened, pool_for, known.tasks[:count])
        if checkpoint is not None:
            own = Pool([VoteWorker(VOTE), *(pool.named(name) for name in known.answers.workers)])
            rated = _rated(own, TrainingAnswers(known.answers).ratings)
            opened = open_planner(TeamSettings().with_checkpoint(checkpoint), rated, seed="study")
            # Votes of a served team stop early, and an untrained Conductor's do not.
            yield _Conductor(TRAINED, opened, self._rated_by_fold(own), known.tasks, early_stop=True)

    def _rated_by_fold(self, pool: Pool) -> Callable[[Task], Pool]:
        """From a task to the pool with ratings that are made without the task's fold."""
        known = self.known
        folds = folds_of(len(known.tasks), self.seed)
        ratings = (TrainingAnswers(select(known.answers, others(folds, fold))).ratings for fold in folds)
        pools = [_rated(pool, each) for each in ratings]
        fold_of = {known.tasks[q].id: number for number, fold in enumerate(folds) for q in fold}
        return lambda task: pools[fold_of[task.id]]

    async def _run(self, conductor: _Conductor, on_progress: OnConductor) -> Evaluation:
        """As many of its tasks as the budget pays for."""
        opened, tasks = conductor.opened, conductor.tasks
        settings = TeamSettings(plan=PlanTable(early_stop=conductor.early_stop))
        runner = replace(
            opened.runner(settings, conductor.pool_for(tasks[0]), self.dispatcher), plan_fallback=None
        )
        done: list[Rollout] = []

        def finished(repeat: int, rollout: Rollout) -> None:
            done.append(rollout)
            spent = f", ${usd:.4f} so far" if (usd := sum(one.trace.cost_usd for one in done)) else ""
            on_progress(f"{conductor.name}{spent}", len(done), len(tasks))

        on_progress(conductor.name, 0, len(tasks))
        try:
            with suppress(BudgetError):
                await evaluate(
                    runner,
                    tasks,
                    pool_for=conductor.pool_for,
                    seed=f"study/{conductor.name}",
                    concurrency=self.concurrency,
                    on_rollout=finished,
                )
        finally:
            await opened.close()
        return Evaluation(opened.planner.name, (), "study", tuple(done), {})

    def _measured(self, conductor: _Conductor, found: Evaluation) -> MethodResult:
        questions, runs = len(self.known.tasks), len(found.rollouts)
        note = f"It is {conductor.opened.description}. Its price includes its own planning."
        if runs < questions:
            note += f" It was measured on {runs:,} questions, and is compared on these."
        if share := found.beyond_recording:
            note += f" For {share:.0%} of its recorded answers, a live worker would have said something else."
        places = {task.id: place for place, task in enumerate(self.known.tasks)}
        score_Q, cost_Q = np.full(questions, np.nan), np.full(questions, np.nan)
        for rollout in found.rollouts:
            place = places[rollout.task_id]
            cost_Q[place] = rollout.trace.uncached_usd
            if rollout.grade.failure is None:
                score_Q[place] = float(rollout.correct)
        return MethodResult(conductor.name, score_Q, cost_Q, None, note=note)


def _rated(pool: Pool, ratings: Ratings | None) -> Pool:
    return Pool(list(pool), ratings, source=pool.source, folder=pool.folder, secrets=pool.secrets)
