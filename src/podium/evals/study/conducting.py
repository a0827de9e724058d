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
from dataclasses import dataclass, replace

import numpy as np

from podium.calls import Dispatcher
from podium.conductor.checkpoint import checkpoint_folder
from podium.conductor.settings import ConductorSettings
from podium.errors import BudgetError
from podium.evals.answering.answer_files import answers_key
from podium.evals.answering.progress import ShowProgress, accuracy_so_far
from podium.evals.answering.question_table import QuestionTable, TablePlanner
from podium.evals.evaluation import Evaluation
from podium.evals.fingerprints import fingerprint
from podium.evals.study.answers import StudyAnswers
from podium.evals.study.crossfit import MethodResult, folds_of, questions_outside_fold
from podium.evals.study.decision import FEWEST
from podium.evals.study.methods import clustered_ratings
from podium.planners.answers import select_questions
from podium.rollout import Rollout
from podium.team.opened_planner import checkpoint_of, open_planner
from podium.team.settings import PlannerChoice, TeamSettings
from podium.workers.pool import Pool
from podium.workers.ratings import Ratings
from podium.workers.vote import VOTE, VoteWorker

PLAIN = "Conductor"
READING = "Conductor that reads ratings"
TRAINED = "trained Conductor that reads ratings"


@dataclass(frozen=True)
class _Conductor:
    """A Conductor to measure."""

    name: str
    """Its name in the report."""
    team: TeamSettings
    """The settings from which it is opened."""
    table: QuestionTable
    """The Conductor's questions and workers. The workers have ratings if the prompt shows them."""
    ratings: Sequence[Ratings] = ()
    """The ratings for each fold of the questions. Empty if the prompt shows none."""

    @property
    def planner(self) -> TablePlanner:
        """The Conductor, with the file of its answers."""
        source = checkpoint_of(self.team)
        files = None if source is None else fingerprint(checkpoint_folder(source))
        ratings = [ratings.model_dump(mode="json") for ratings in self.ratings]
        workers = [(worker.profile.name, worker.identity) for worker in self.table.pool]
        described = self.team.conductor.model_dump(mode="json"), files, workers, ratings
        return TablePlanner(answers_key(self.name, described), self.name, self.team)


@dataclass(frozen=True)
class ConductorStudy:
    """Runs Conductors on the questions that the workers answered."""

    table: QuestionTable
    """The questions and workers. The table's team says which Conductor plans."""
    known: StudyAnswers
    """The workers' answers. The ratings for a question are made from the answers of other folds."""
    dispatcher: Dispatcher
    """The dispatcher. Its spend limits end the run at the budget, and its cache keeps all paid answers."""
    seed: str
    show: ShowProgress

    async def run(self, *, count: int, checkpoint: str | None) -> tuple[list[MethodResult], list[str]]:
        """Run the pool's Conductor twice, without and with ratings, and then a trained one. Returns the results of
        those that were measured, and notes on why others were not.

        Args:
            count: how many questions the pool's Conductor gets. If it is 0, the Conductor is not run.
            checkpoint: the trained Conductor, which gets all questions. None if there is none.

        Raises:
            UsageError: the checkpoint cannot be opened, or must not conduct this pool.
        """
        measured: list[MethodResult] = []
        notes: list[str] = []
        for conductor in self._conductors(count, checkpoint):
            rollouts = await self._run(conductor)
            if len(rollouts) < min(FEWEST, len(conductor.table.questions)):
                notes.append(
                    f"The {conductor.name} is left out: the budget ended after {len(rollouts)} questions."
                )
            else:
                measured.append(await self._result(conductor, rollouts))
        return measured, notes

    def _conductors(self, count: int, checkpoint: str | None) -> Iterator[_Conductor]:
        if not count and checkpoint is None:
            return
        pool, known = self.table.pool, self.known
        folds = folds_of(len(known.tasks), self.seed)
        by_fold = [
            clustered_ratings(select_questions(known.answers, questions_outside_fold(folds, fold)))
            for fold in folds
        ]

        def rate(table: QuestionTable) -> QuestionTable:
            """The table in which each question has ratings from the other folds."""
            pools = [_with_ratings(table.pool, ratings) for ratings in by_fold]
            pool_of = {known.tasks[q].id: pools[number] for number, fold in enumerate(folds) for q in fold}
            return replace(table, rated=lambda task: pool_of[task.id])

        if count:
            # If the pool had ratings of its own, they would route questions in place of the Conductor.
            voting = _with_ratings(pool if VOTE in pool.names else pool.joined([VoteWorker(VOTE)]), None)
            table = replace(self.table, pool=voting).with_questions(known.tasks[:count])
            team = table.team.with_planner(PlannerChoice(), max_steps=None, early_stop=False)
            yield _Conductor(PLAIN, team, table)
            yield _Conductor(READING, team, rate(table), by_fold)
        if checkpoint is not None:
            team_pool = Pool([VoteWorker(VOTE), *(pool.named(name) for name in known.answers.workers)])
            table = rate(replace(self.table, pool=team_pool).with_questions(known.tasks))
            # The check whether the Conductor fits this pool uses the ratings of all questions.
            table = replace(table, pool=_with_ratings(team_pool, clustered_ratings(known.answers)))
            # Votes of a served team stop early. Votes of an untrained Conductor do not.
            trained = ConductorSettings(checkpoint=checkpoint)
            team = table.team.with_planner(PlannerChoice(), trained, max_steps=None, early_stop=True)
            yield _Conductor(TRAINED, team, table, by_fold)

    async def _run(self, conductor: _Conductor) -> list[Rollout]:
        """The Conductor's answers to as many questions as the budget pays for."""
        table, planner = conductor.table, conductor.planner
        on_answer = accuracy_so_far(self.show, table.missing(planner.key), self.dispatcher)
        with suppress(BudgetError):
            await table.answer([planner], self.dispatcher, on_answer)
        return list(table.kept_answers(planner.key).values())

    async def _result(self, conductor: _Conductor, rollouts: Sequence[Rollout]) -> MethodResult:
        questions, runs = len(self.known.tasks), len(rollouts)
        opened = open_planner(conductor.team, conductor.table.pool, seed="0")
        await opened.close()
        note = f"It is {opened.description}. Its price includes its own planning."
        if runs < questions:
            note += f" It was measured on {runs:,} questions, and is compared on these."
        if share := Evaluation(tuple(rollouts)).beyond_recording:
            note += f" For {share:.0%} of its recorded answers, a live worker would have said something else."
        indices = {task.id: index for index, task in enumerate(self.known.tasks)}
        score_Q, cost_Q = np.full(questions, np.nan), np.full(questions, np.nan)
        for rollout in rollouts:
            index = indices[rollout.task]
            cost_Q[index] = rollout.trace.uncached_usd
            if rollout.grade.failure is None:
                score_Q[index] = float(rollout.correct)
        return MethodResult(conductor.name, score_Q, cost_Q, None, note=note)


def _with_ratings(pool: Pool, ratings: Ratings | None) -> Pool:
    return Pool(list(pool), ratings, source=pool.source, folder=pool.folder, secrets=pool.secrets)
