"""Measures Conductors by really running their plans: the pool's own without and with ratings in its prompt, and a
trained one.

Their plans rewrite subtasks and let workers read one another. So planner and workers are called and paid, within what
the budget has left; only a step that asks the bare question finds its answer in the response cache. A Conductor's
ratings of a question come from other questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from podium.errors import BudgetError, UsageError
from podium.evals.evaluation import Evaluation, evaluate
from podium.executor import Dispatcher, ExecutionSettings
from podium.ratings.answers import select
from podium.rollout import Rollout
from podium.study.answering import StudyAnswers
from podium.study.crossfit import MethodResult, folds_of, others
from podium.study.decision import FEWEST
from podium.study.methods import TrainingAnswers
from podium.study.questions import StudyQuestions
from podium.tasks import Task
from podium.team import Runner
from podium.team.planning import OpenedPlanner, open_planner
from podium.team.settings import PlannerChoice, TeamSettings
from podium.types import Budget
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


def conducting(team: TeamSettings) -> TeamSettings:
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
        open_planner(conducting(team), pool, seed="study")
    except UsageError as error:
        return f"The Conductor is left out: {error}"
    return ""


async def run_conductors(
    team: TeamSettings,
    pool: Pool,
    questions: StudyQuestions,
    known: StudyAnswers,
    *,
    count: int,
    checkpoint: str | None,
    dispatcher: Dispatcher,
    concurrency: int,
    seed: str = "0",
    on_progress: OnConductor = lambda name, done, total: None,
) -> ConductorResults:
    """Run the pool's Conductor twice, without and with ratings, and then a trained one.

    Args:
        team: says which Conductor plans.
        pool: the workers.
        questions: with graders that can judge new answers.
        known: the workers' own answers; ratings of a question are made of the other folds' answers.
        count: how many questions the pool's Conductor gets; 0: it is not run.
        checkpoint: the trained Conductor, which gets all questions; None: there is none.
        dispatcher: its spend limits end the run where the budget does; its cache keeps what was paid.

    Raises:
        UsageError: the checkpoint cannot be opened, or must not conduct this pool.
    """
    measured: list[MethodResult] = []
    notes: list[str] = []
    for conductor in _conductors(
        team,
        pool,
        questions,
        known,
        count=count,
        checkpoint=checkpoint,
        dispatcher=dispatcher,
        seed=seed,
    ):
        found = await _run(conductor, dispatcher=dispatcher, concurrency=concurrency, on_progress=on_progress)
        runs = len(found.rollouts)
        if runs < min(FEWEST, len(conductor.tasks)):
            notes.append(f"The {conductor.name} is left out: the budget ended after {runs} questions.")
        else:
            measured.append(_measured(conductor, found, known))
    return ConductorResults(tuple(measured), tuple(notes))


def _conductors(
    team: TeamSettings,
    pool: Pool,
    questions: StudyQuestions,
    known: StudyAnswers,
    *,
    count: int,
    checkpoint: str | None,
    dispatcher: Dispatcher,
    seed: str,
) -> Iterator[_Conductor]:
    """Opens each when its turn comes."""
    answered = {task.id for task in known.tasks}
    tasks = [task for task in questions.tasks if task.id in answered]
    if count:
        # With ratings of its own, ratings would choose instead of a Conductor.
        voting = _rated(pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), None)
        pools = {PLAIN: lambda task: voting, READING: _rated_by_fold(voting, known, seed)}
        for name, pool_for in pools.items():
            opened = open_planner(conducting(team), voting, seed="study", dispatcher=dispatcher)
            yield _Conductor(name, opened, pool_for, tasks[:count])
    if checkpoint is not None and questions.judged_by != "agreement":
        own = Pool([VoteWorker(VOTE), *(pool.named(name) for name in known.answers.workers)])
        rated = _rated(own, TrainingAnswers(known.answers).ratings)
        opened = open_planner(TeamSettings().with_checkpoint(checkpoint), rated, seed="study")
        # Votes of a served team stop early, and an untrained Conductor's do not.
        yield _Conductor(TRAINED, opened, _rated_by_fold(own, known, seed), tasks, early_stop=True)


def _rated_by_fold(pool: Pool, known: StudyAnswers, seed: str) -> Callable[[Task], Pool]:
    """From a task to the pool with ratings that are made without the task's fold."""
    folds = folds_of(len(known.tasks), seed)
    ratings = (TrainingAnswers(select(known.answers, others(folds, fold))).ratings for fold in folds)
    pools = [_rated(pool, each) for each in ratings]
    fold_of = {known.tasks[q].id: number for number, fold in enumerate(folds) for q in fold}
    return lambda task: pools[fold_of[task.id]]


def _rated(pool: Pool, ratings: Ratings | None) -> Pool:
    return Pool(list(pool), ratings, source=pool.source, folder=pool.folder, secrets=pool.secrets)


async def _run(
    conductor: _Conductor, *, dispatcher: Dispatcher, concurrency: int, on_progress: OnConductor
) -> Evaluation:
    """As many of its tasks as the budget pays for."""
    opened, tasks = conductor.opened, conductor.tasks
    runner = Runner(
        opened.planner,
        conductor.pool_for(tasks[0]),
        budget=Budget(rounds=opened.trained.rounds),
        max_steps=opened.trained.max_steps,
        settings=ExecutionSettings(early_stop=conductor.early_stop),
        dispatcher=dispatcher,
    )
    done: list[Rollout] = []

    def finished(repeat: int, rollout: Rollout) -> None:
        done.append(rollout)
        on_progress(conductor.name, len(done), len(tasks))

    try:
        with suppress(BudgetError):
            await evaluate(
                runner,
                tasks,
                pool_for=conductor.pool_for,
                seed=f"study/{conductor.name}",
                concurrency=concurrency,
                on_rollout=finished,
            )
    finally:
        await opened.close()
    return Evaluation(opened.planner.name, (), "study", tuple(done), {})


def _measured(conductor: _Conductor, found: Evaluation, known: StudyAnswers) -> MethodResult:
    note = f"It is {conductor.opened.description}. Its price includes its own planning."
    if len(found.rollouts) < len(known.tasks):
        note += f" It was measured on {len(found.rollouts):,} questions, and is compared on these."
    if share := found.beyond_recording:
        note += f" {share:.0%} of the recorded answers stand where a live worker would have answered something else."
    places = {task.id: place for place, task in enumerate(known.tasks)}
    score_Q, cost_Q = np.full(len(places), np.nan), np.full(len(places), np.nan)
    for rollout in found.rollouts:
        place = places[rollout.task_id]
        cost_Q[place] = rollout.trace.uncached_usd
        if rollout.grade.failure is None:
            score_Q[place] = float(rollout.correct)
    return MethodResult(conductor.name, score_Q, cost_Q, None, note=note)
