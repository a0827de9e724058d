"""A table of questions and open workers, whose answers are kept in a folder, for studies and recordings.

The questions may change between two starts: more questions, another text, another right answer, another grader. So a
kept answer counts only for the question to which it was given, as long as the same grader judges it. If a start is
killed, a call fails or the budget ends, the next start of the same command asks the missing questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from podium.calls import Dispatcher
from podium.calls.dispatcher import RESPONSES, open_dispatcher
from podium.errors import BudgetError
from podium.evals.answering.answer_files import AnswerFiles, OnAnswer, answers_key
from podium.evals.answering.progress import AskingProgress, ShowProgress, accuracy_so_far
from podium.evals.evaluation import EvaluationJob, evaluate_in_turns, without_fallback
from podium.rollout import Rollout
from podium.tasks import Task
from podium.team.settings import PlannerChoice, TeamSettings
from podium.team.team import Team
from podium.types import Budget
from podium.workers.base import has_paid_workers
from podium.workers.pool import Pool


@dataclass(frozen=True)
class TablePlanner:
    """A planner that answers the questions of a table."""

    key: str
    """The key of the file of its answers."""
    label: str
    """What it is called while it answers."""
    team: TeamSettings
    """The settings from which it is opened."""
    worker: str | None = None
    """The worker that answers alone. None for another planner."""


@dataclass(frozen=True)
class QuestionTable:
    """Workers that are open, and questions that were read."""

    folder: Path
    """The folder that keeps the answers."""
    team: TeamSettings
    """The settings of the workers' team. Its Conductor plans if no other one is named."""
    pool: Pool
    questions: Sequence[Task]
    judged: bool = True
    """Whether each answer can have a verdict. Then an answer without one is graded again."""
    rated: Callable[[Task], Pool] | None = None
    """Returns the workers of a question with their ratings. If it is None, `pool` answers every question."""
    repeats: int = 1
    """Answers of each planner to each question."""
    concurrency: int = 16
    """The most calls at once."""
    seed: int = 0
    """Seeds what workers draw."""

    def with_questions(self, questions: Sequence[Task], repeats: int = 1) -> Self:
        """The table with other questions, such as a part of its own, and so many answers to each."""
        return replace(self, questions=questions, repeats=repeats)

    def alone(self, name: str) -> TablePlanner:
        """The planner by which a worker answers alone."""
        key = answers_key(name, [name, self.pool.named(name).identity])
        team = self.team.with_planner(PlannerChoice(planner=f"single:{name}"))
        return TablePlanner(key, name, team, name)

    def kept_answers(self, key: str) -> Mapping[tuple[str, int], Rollout]:
        """The answers in a file to the present questions, by task and repeat."""
        known = {task.id: task for task in self.questions}
        return {
            slot: answer
            for slot, answer in AnswerFiles(self.folder).answers(key).items()
            if answer.task in known and answer.matches(known[answer.task])
        }

    def missing(self, key: str) -> int:
        """How many answers or verdicts a file lacks."""
        return self._lacks(self.kept_answers(key))

    def _lacks(self, answers: Mapping[tuple[str, int], Rollout]) -> int:
        return sum(
            (answer := answers.get((task.id, repeat))) is None
            or answer.worker_failed
            or (self.judged and answer.grade.failure is not None)
            for task in self.questions
            for repeat in range(self.repeats)
        )

    async def answer(
        self,
        planners: Iterable[TablePlanner],
        dispatcher: Dispatcher,
        on_answer: OnAnswer = lambda label, answer: None,
    ) -> None:
        """Add all missing answers to the files of these planners.

        Raises:
            UsageError: a planner cannot be opened.
            BudgetError: a spend limit refused a call. The answers until then are kept.
        """
        files = AnswerFiles(self.folder, on_answer)
        jobs: list[EvaluationJob] = []
        async with AsyncExitStack() as teams:
            for planner in planners:
                kept = self.kept_answers(planner.key)
                if not self._lacks(kept):
                    continue
                team = Team.from_settings(
                    planner.team, self.pool, dispatcher=dispatcher, seed=str(self.seed), for_evaluation=True
                )
                teams.push_async_callback(team.release)
                rounds = max(team.planner.rounds, team.opened_planner.plan_limits.rounds)
                jobs.append(
                    EvaluationJob(
                        replace(team.runner, budget=Budget(rounds=rounds)),
                        self.questions,
                        pool_for=partial(self._pool_of, planner.worker),
                        repeats=self.repeats,
                        seed=str(self.seed),
                        kept={slot: answer for slot, answer in kept.items() if not answer.worker_failed},
                        judged=self.judged,
                        on_rollout=partial(files.add, planner.key, planner.label),
                    )
                )
            await evaluate_in_turns(jobs, concurrency=self.concurrency)

    def _pool_of(self, alone: str | None, task: Task) -> Pool:
        pool = self.pool if self.rated is None else self.rated(task)
        return pool if alone is None else without_fallback(pool, alone)


def open_run_dispatcher(
    team: TeamSettings, pool: Pool, folder: Path, *, pays: bool = False
) -> AbstractContextManager[Dispatcher]:
    """The dispatcher of a run, whose folder keeps all answers.

    Args:
        pays: whether something besides workers costs money.
    """
    return open_dispatcher(
        paid_workers=has_paid_workers(pool),
        run=folder,
        run_usd=team.budget.run_usd,
        day_usd=team.budget.day_usd,
        cache=team.cache or folder / RESPONSES,
        replay=team.replay,
        pays=pays,
    )


async def ask_each_alone(
    parts: Sequence[QuestionTable], dispatcher: Dispatcher, show: ShowProgress
) -> AskingProgress:
    """Ask every worker that is no tool every question of each table.

    Args:
        parts: tables over the same workers.
        dispatcher: once one of its spend limits refuses a call, no more calls are made.
    """
    workers = [parts[0].alone(name) for name in parts[0].pool.answering]
    wanted = len(workers) * sum(part.repeats * len(part.questions) for part in parts)
    missing = sum(part.missing(worker.key) for part in parts for worker in workers)
    progress = AskingProgress(wanted, wanted - missing)
    so_far = accuracy_so_far(show, missing, dispatcher)

    def answered(label: str, answer: Rollout) -> None:
        progress.count(label, answer)
        so_far(label, answer)

    try:
        for part in parts:
            await part.answer(workers, dispatcher, answered)
    except BudgetError as error:
        progress.refusal = dispatcher.refusal or str(error)
    return progress
