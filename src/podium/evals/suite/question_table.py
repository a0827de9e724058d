"""Questions and open workers, in the form of the table that a suite's jobs answer, for studies and recordings.

The questions of a study may change between two starts: more questions, another text, another right answer, another
grader. So a kept answer counts only for the question to which it was given, as long as the same grader judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from podium.calls import Dispatcher
from podium.evals.suite.comparison_inputs import ComparisonInputs
from podium.evals.suite.manifest import SuiteJob, TableSettings
from podium.evals.suite.results import AnswerFiles, OnAnswer, answers_key
from podium.evals.suite.suite_run import run_here
from podium.evals.suite.suite_settings import AnsweringSettings, PlannerEntry, PoolEntry, TasksEntry
from podium.evals.suite.training import SuiteCache
from podium.rollout import Rollout
from podium.tasks import Task
from podium.tasks.task import TaskList
from podium.team.settings import TeamSettings
from podium.workers.pool import Pool


@dataclass(frozen=True, kw_only=True)
class QuestionTable(ComparisonInputs):
    """Workers that are open, and questions that were read."""

    folder: Path
    """The folder that keeps the answers."""
    questions: tuple[Task, ...]
    judged: bool = True
    """Whether each answer can have a verdict. Then an answer without one is graded again."""
    rated: Callable[[Task], Pool] | None = None
    """Returns the workers of a question with their ratings. If it is None, `pool` answers every question."""
    concurrency: int = 16
    """The most calls at once."""
    seed: int = 0
    """Seeds what workers draw."""

    @classmethod
    def of(
        cls,
        folder: Path,
        team: TeamSettings,
        pool: Pool,
        questions: Sequence[Task],
        *,
        name: str,
        judged: bool = True,
        concurrency: int = 16,
        seed: int = 0,
    ) -> Self:
        """The table of these questions and workers.

        Args:
            name: the name of the questions.
        """
        table = TableSettings(
            tasks=TasksEntry(name=name),
            pool=PoolEntry(name=team.workers_file),
            split="all",
            questions=len(questions),
        )
        return cls(
            table,
            pool,
            team,
            folder=folder,
            questions=tuple(questions),
            judged=judged,
            concurrency=concurrency,
            seed=seed,
        )

    def with_questions(self, questions: Sequence[Task]) -> Self:
        """The table with other questions, such as a part of its own."""
        return replace(self, questions=tuple(questions))

    def single_worker_entry(self, name: str) -> tuple[str, PlannerEntry]:
        """A worker that answers alone: the key of the file of its answers, and the planner."""
        key = answers_key(name, [name, self.pool.named(name).identity])
        return key, PlannerEntry(planner=f"single:{name}", label=name)

    def tasks(self, seed: int) -> TaskList:
        """The questions, whatever the seed."""
        return TaskList(self.table.tasks.name, self.questions, seed=None)

    def pool_of(self, task: Task, place: int) -> Pool:
        """The pool that answers a question."""
        return self.pool if self.rated is None else self.rated(task)

    def asks_again(self, task: Task, answer: Rollout) -> bool:
        """Whether the answer belongs to another question, or a worker failed."""
        return not answer.matches(task) or answer.worker_failed

    def grades_again(self, answer: Rollout) -> bool:
        """Whether a possible verdict is missing."""
        return self.judged and super().grades_again(answer)

    def kept_answers(self, key: str) -> Mapping[tuple[str, int], Rollout]:
        """The answers in a file to the present questions, by task and repeat."""
        known = {task.id: task for task in self.questions}
        return {
            place: answer
            for place, answer in AnswerFiles(self.folder).answers(key).items()
            if answer.task in known and answer.matches(known[answer.task])
        }

    def missing(self, key: str, repeats: int = 1) -> int:
        """How many answers or verdicts a file lacks."""
        return self._lacks(self.kept_answers(key), repeats)

    def _lacks(self, answers: Mapping[tuple[str, int], Rollout], repeats: int) -> int:
        return sum(
            (answer := answers.get((task.id, repeat))) is None
            or self.asks_again(task, answer)
            or self.grades_again(answer)
            for task in self.questions
            for repeat in range(repeats)
        )

    async def answer(
        self,
        planners: Mapping[str, PlannerEntry],
        dispatcher: Dispatcher,
        on_answer: OnAnswer = lambda label, answer: None,
        *,
        repeats: int = 1,
        early_stop: bool = False,
    ) -> None:
        """Add all missing answers to the files of these planners, by key.

        Raises:
            UsageError: a planner cannot be opened.
            BudgetError: a spend limit refused a call. The answers until then are kept.
        """
        settings = AnsweringSettings(repeats=repeats, concurrency=self.concurrency, early_stop=early_stop)
        known = {key: self.kept_answers(key) for key in planners}
        jobs = [
            SuiteJob(settings=settings, table=self.table, entry=entry, seed=self.seed, keys={"": key})
            for key, entry in planners.items()
            if self._lacks(known[key], repeats)
        ]
        results = AnswerFiles(self.folder, on_answer, known)
        await run_here(jobs, results, SuiteCache(), dispatcher=dispatcher, open_inputs=self)
