"""Measures the pool's Conductor by really running its plans, without and with the workers' ratings in its prompt.

Their plans rewrite subtasks and let workers read one another, which no recording can answer. So planner and workers are
called and paid, within what the budget has left. A Conductor's ratings of a question come from other questions.
A trained checkpoint that asks the bare question alone can be run over the recorded answers, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.errors import BudgetError, UsageError
from podium.evals.evaluation import Evaluation, evaluate
from podium.executor import Dispatcher, ExecutionSettings
from podium.ratings.answers import Answers, select
from podium.rollout import Rollout
from podium.study.answering import StudyAnswers
from podium.study.crossfit import MethodResult, folds_of, others
from podium.study.decision import FEWEST
from podium.study.methods import TrainingAnswers
from podium.study.questions import StudyQuestions
from podium.tasks import Task
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
_CHUNK = 10
"""Questions between two looks at what was spent."""

OnConductor = Callable[[str, int, int], None]
"""Called with (name of the Conductor, questions done, all)."""


@dataclass(frozen=True)
class ConductorResults:
    """The Conductors that were measured, and why others were not."""

    measured: tuple[MethodResult, ...] = ()
    notes: tuple[str, ...] = ()


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
    recorded: StudyAnswers,
    *,
    count: int,
    checkpoint: str | None,
    dispatcher: Dispatcher,
    concurrency: int,
    seed: str = "0",
    on_progress: OnConductor = lambda name, done, total: None,
) -> ConductorResults:
    """Run the pool's Conductor twice, without and with ratings, and a trained one over the recorded answers.

    Args:
        team: says which Conductor plans.
        pool: the live workers.
        questions: with graders that can judge new answers. Those that were not recorded are skipped.
        recorded: the recorded answers; ratings of a question are made of the other folds' answers.
        count: how many questions the pool's Conductor gets; 0: it is not run.
        checkpoint: the trained Conductor; None: there is none.
        dispatcher: its accounts end the run where the budget does; its cache keeps what was paid.

    Raises:
        UsageError: the checkpoint cannot be opened, or must not conduct this pool.
    """
    answers = recorded.answers
    places = {text.strip(): q for q, text in enumerate(answers.texts)}
    measured: list[MethodResult] = []
    notes: list[str] = []
    tasks = [task for task in questions.tasks if task.question.text.strip() in places][:count]
    # With ratings of its own, ratings would choose instead of a Conductor.
    voting = _rated(pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), None)
    conductors: dict[str, Callable[[Task], Pool]] = {}
    if tasks:
        conductors = {PLAIN: lambda task: voting, READING: _rated_by_fold(voting, answers, seed)}
    for name, pool_for in conductors.items():
        opened = open_planner(conducting(team), voting, seed="study", dispatcher=dispatcher)
        runs = await _run(
            name,
            opened,
            tasks,
            pool_for,
            dispatcher=dispatcher,
            concurrency=concurrency,
            on_progress=on_progress,
        )
        if len(runs) < FEWEST:
            notes.append(f"The {name} is left out: the budget ended after {len(runs)} questions.")
            continue
        note = f"It is {opened.description}. Its price includes its own planning."
        if len(runs) < len(answers.texts):
            note = f"{note} It was measured on {len(runs):,} questions, and is compared on these."
        measured.append(_measured(name, runs, places, note))
    if checkpoint is not None and questions.judged_by != "agreement":
        found = await _run_checkpoint(checkpoint, recorded, seed)
        share = found.beyond_recording
        note = "Its plans were run over the recorded answers." + (
            f" {share:.0%} of these stand where a live worker would have answered something else."
            if share
            else ""
        )
        measured.append(_measured(TRAINED, found.rollouts, places, note))
    return ConductorResults(tuple(measured), tuple(notes))


async def _run_checkpoint(checkpoint: str, recorded: StudyAnswers, seed: str) -> Evaluation:
    """A trained Conductor over the recorded answers. It costs nothing."""
    voting = Pool([VoteWorker(VOTE), *recorded.replay])
    everything = _rated(voting, TrainingAnswers(recorded.answers).ratings)
    opened = open_planner(TeamSettings().with_checkpoint(checkpoint), everything, seed="study")
    try:
        return await evaluate(
            opened.planner,
            recorded.tasks,
            _rated_by_fold(voting, recorded.answers, seed),
            seed="study",
            budget=Budget(rounds=opened.trained.rounds),
            max_steps=opened.trained.max_steps,
            execution=ExecutionSettings(early_stop=True),
        )
    finally:
        await opened.close()


def _rated_by_fold(pool: Pool, answers: Answers, seed: str) -> Callable[[Task], Pool]:
    """From a task to the pool with ratings that are made without the task's fold."""
    folds = folds_of(len(answers.texts), seed)
    pools = [_rated(pool, TrainingAnswers(select(answers, others(folds, fold))).ratings) for fold in folds]
    fold_of = {answers.texts[q].strip(): number for number, fold in enumerate(folds) for q in fold}
    return lambda task: pools[fold_of[task.question.text.strip()]]


def _rated(pool: Pool, ratings: Ratings | None) -> Pool:
    return Pool(list(pool), ratings, source=pool.source, folder=pool.folder, secrets=pool.secrets)


async def _run(
    name: str,
    opened: OpenedPlanner,
    tasks: Sequence[Task],
    pool_for: Callable[[Task], Pool],
    *,
    dispatcher: Dispatcher,
    concurrency: int,
    on_progress: OnConductor,
) -> list[Rollout]:
    """The rollouts of as many tasks as the budget pays for."""
    done: list[Rollout] = []
    try:
        for start in range(0, len(tasks), _CHUNK):
            try:
                found = await evaluate(
                    opened.planner,
                    tasks[start : start + _CHUNK],
                    pool_for,
                    seed=f"study/{name}",
                    concurrency=concurrency,
                    budget=Budget(rounds=opened.trained.rounds),
                    max_steps=opened.trained.max_steps,
                    dispatcher=dispatcher,
                )
            except BudgetError:
                break
            done += found.rollouts
            on_progress(name, len(done), len(tasks))
    finally:
        await opened.close()
    return done


def _measured(name: str, runs: Sequence[Rollout], places: Mapping[str, int], note: str) -> MethodResult:
    score_Q, cost_Q = np.full(len(places), np.nan), np.full(len(places), np.nan)
    for rollout in runs:
        place = places[rollout.trace.question.text.strip()]
        cost_Q[place] = rollout.trace.uncached_usd
        if rollout.grade.failure is None:
            score_Q[place] = float(rollout.correct)
    return MethodResult(name, score_Q, cost_Q, None, note=note)
