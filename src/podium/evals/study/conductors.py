"""Measures Conductors by really running their plans: the pool's Conductor without and with ratings in its prompt, and
a trained Conductor.

The plans rewrite subtasks and let workers read each other's responses. So planners and workers are called and paid,
within the rest of the budget. Only a step that asks the bare question finds its answer in the response cache. The
ratings for a question come from other folds of questions. If a later start has a further question or answer, the folds
change, and with them all ratings. Then Conductors that read ratings run on all questions again, and are paid again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from podium.calls import CallState
from podium.conductor.checkpoint import checkpoint_folder
from podium.conductor.settings import ConductorSettings
from podium.errors import BudgetExceededError
from podium.evals.answer_files import ShowProgress, accuracy_so_far, answers_key
from podium.evals.evaluation import Evaluation
from podium.evals.fingerprints import fingerprint
from podium.evals.question_table import QuestionTable, TablePlanner, answer_table
from podium.evals.study.answers import StudyAnswers
from podium.evals.study.decision import FEWEST
from podium.evals.study.methods import MethodResult, clustered_ratings, folds_of, questions_outside_fold
from podium.planners.answer_matrix import select_questions
from podium.rollout import Rollout
from podium.team.opened_planner import checkpoint_of, open_planner
from podium.team.settings import PlannerChoice, TeamSettings
from podium.workers.pool import Pool
from podium.workers.ratings import Ratings
from podium.workers.vote import VOTE, VoteWorker

PLAIN = "Conductor"
READING = "Conductor that reads ratings"
TRAINED = "trained Conductor that reads ratings"


async def measure_conductors(
    table: QuestionTable,
    known: StudyAnswers,
    call_state: CallState,
    *,
    count: int,
    checkpoint: str | None,
    seed: str,
    show: ShowProgress,
) -> tuple[list[MethodResult], list[str]]:
    """Run the pool's Conductor twice, without and with ratings, and then a trained one. Returns the results of those
    that were measured, and notes on why others were not.

    Args:
        table: the questions and workers. The table's team says which Conductor plans.
        known: the workers' answers. The ratings for a question are made from the answers of other folds.
        call_state: its spend limits end the run at the budget, and its cache keeps all paid answers.
        count: how many questions the pool's Conductor gets. If it is 0, the Conductor is not run.
        checkpoint: the trained Conductor, which gets all questions. None if there is none.

    Raises:
        UsageError: the checkpoint cannot be opened, or must not conduct this pool.
    """
    measured: list[MethodResult] = []
    notes: list[str] = []
    if not count and not checkpoint:
        return measured, notes
    for planner in _conductors(table, known, count, checkpoint, seed):
        with suppress(BudgetExceededError):
            await answer_table([planner], call_state, accuracy_so_far(show, planner.missing(), call_state))
        rollouts = list(planner.kept_answers().values())
        if len(rollouts) < min(FEWEST, len(planner.table.questions)):
            notes.append(
                f"The {planner.label} is left out: the budget ended after {len(rollouts)} questions."
            )
        else:
            measured.append(await _result(planner, known, rollouts))
    return measured, notes


def _conductors(
    table: QuestionTable, known: StudyAnswers, count: int, checkpoint: str | None, seed: str
) -> Iterator[TablePlanner]:
    pool, answers, tasks = table.pool, known.answers, known.tasks
    folds = folds_of(len(tasks), seed)
    by_fold = [
        clustered_ratings(select_questions(answers, questions_outside_fold(folds, fold))) for fold in folds
    ]

    def rate(unrated: QuestionTable) -> QuestionTable:
        """The table in which each question has ratings from the other folds."""
        pools = [_with_ratings(unrated.pool, ratings) for ratings in by_fold]
        pool_of = {tasks[q].id: pools[number] for number, fold in enumerate(folds) for q in fold}
        return replace(unrated, rated=lambda task: pool_of[task.id])

    if count:
        # If the pool had ratings of its own, they would route questions in place of the Conductor.
        voting = _with_ratings(pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), None)
        plain = replace(table, pool=voting).with_questions(tasks[:count])
        team = table.team.with_planner(PlannerChoice(), max_steps=None, early_stop=False)
        yield _conductor(PLAIN, team, plain)
        yield _conductor(READING, team, rate(plain), by_fold)
    if checkpoint is not None:
        team_pool = Pool([VoteWorker(VOTE), *(pool.named(name) for name in answers.workers)])
        rated = rate(replace(table, pool=team_pool).with_questions(tasks))
        # The check whether the Conductor fits this pool uses the ratings of all questions.
        rated = replace(rated, pool=_with_ratings(team_pool, clustered_ratings(answers)))
        # Votes of a served team stop early. Votes of an untrained Conductor do not.
        trained = ConductorSettings(checkpoint=checkpoint)
        team = table.team.with_planner(PlannerChoice(), trained, max_steps=None, early_stop=True)
        yield _conductor(TRAINED, team, rated, by_fold)


def _conductor(
    name: str, team: TeamSettings, table: QuestionTable, ratings: Sequence[Ratings] = ()
) -> TablePlanner:
    """A Conductor by its name in the report.

    Args:
        ratings: the ratings for each fold of the questions. Empty if the prompt shows none.
    """
    source = checkpoint_of(team)
    files = None if source is None else fingerprint(checkpoint_folder(source))
    workers = [(worker.profile.name, worker.identity) for worker in table.pool]
    shown = [one.model_dump(mode="json") for one in ratings]
    described = team.conductor.model_dump(mode="json"), files, workers, shown
    return TablePlanner(table, answers_key(name, described), name, team)


async def _result(conductor: TablePlanner, known: StudyAnswers, rollouts: Sequence[Rollout]) -> MethodResult:
    questions, runs = len(known.tasks), len(rollouts)
    opened = open_planner(conductor.team, conductor.table.pool, seed="0")
    await opened.close()
    note = f"It is {opened.description}. Its price includes its own planning."
    if runs < questions:
        note += f" It was measured on {runs:,} questions, and is compared on these."
    if share := Evaluation(tuple(rollouts)).beyond_recording:
        note += f" For {share:.0%} of its recorded answers, a live worker would have said something else."
    indices = {task.id: index for index, task in enumerate(known.tasks)}
    score_Q, cost_Q = np.full(questions, np.nan), np.full(questions, np.nan)
    for rollout in rollouts:
        index = indices[rollout.task]
        cost_Q[index] = rollout.trace.uncached_usd
        if rollout.grade.failure is None:
            score_Q[index] = float(rollout.correct)
    return MethodResult(conductor.label, score_Q, cost_Q, None, note=note)


def _with_ratings(pool: Pool, ratings: Ratings | None) -> Pool:
    return Pool(list(pool), ratings, source=pool.source, secrets=pool.secrets)
