"""The questions of a study and its workers, in the form of the table that a suite's jobs answer.

Its questions may change between two starts: more of them, another text, another right answer, another grader. So a kept
answer counts only for the question that it was given to, as long as the same grader judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from podium.calls import Dispatcher
from podium.evals.study.questions import StudyQuestions
from podium.evals.suite.plan import SuiteJob, TableSettings
from podium.evals.suite.results import (
    AnswerFiles,
    GradedAnswer,
    OnAnswer,
    answers_key,
    parse_answers,
)
from podium.evals.suite.run import run_here
from podium.evals.suite.settings import PlannerEntry, PoolEntry, SuiteSettings, TasksEntry
from podium.evals.suite.setup import TableSetup
from podium.evals.suite.training import TrainingCache
from podium.tasks import Task
from podium.tasks.task import TaskList
from podium.team.settings import TeamSettings
from podium.workers.pool import Pool


@dataclass(frozen=True, kw_only=True)
class StudyTable(TableSetup):
    """Workers that are open, and questions that were read."""

    folder: Path
    """Of the study, which keeps the answers."""
    questions: StudyQuestions
    rated: Callable[[Task], Pool] | None = None
    """The workers of a question with their ratings; None: `pool` answers every question."""
    concurrency: int = 16
    """The most calls at once."""
    read: Mapping[str, Mapping[tuple[str, int], GradedAnswer]] = field(default_factory=dict)
    """By key, what files were found to have."""

    @classmethod
    def of_study(
        cls, folder: Path, team: TeamSettings, pool: Pool, questions: StudyQuestions, concurrency: int = 16
    ) -> Self:
        """The table of these questions and workers."""
        tasks, workers = TasksEntry(name=questions.name), PoolEntry(name=team.workers_file)
        table = TableSettings(tasks=tasks, pool=workers, split="study", questions=len(questions.tasks))
        return cls(table, pool, team, folder=folder, questions=questions, concurrency=concurrency)

    def of(self, tasks: Sequence[Task]) -> Self:
        """The same with some of its questions."""
        return replace(self, questions=replace(self.questions, tasks=tuple(tasks)))

    def alone(self, name: str) -> tuple[str, PlannerEntry]:
        """A worker that answers alone: the key of the file of its answers, and the planner."""
        key = answers_key(name, self.pool.named(name).identity)
        return key, PlannerEntry(planner=f"single:{name}", label=name)

    def tasks(self, seed: int) -> TaskList:
        """The questions, whatever the seed."""
        return TaskList(self.questions.name, self.questions.tasks, seed=None)

    def pool_of(self, task: Task, place: int) -> Pool:
        """The pool that answers a question."""
        return self.pool if self.rated is None else self.rated(task)

    def asks_again(self, task: Task, answer: GradedAnswer) -> bool:
        """Whether the answer is of another question, a worker failed, or a verdict lacks where there can be one."""
        unjudged = answer.grade.failure is not None and self.questions.judged_by != "agreement"
        return not answer.is_of(task) or answer.rollout.worker_failed or unjudged

    def answers_in(self, results: AnswerFiles, key: str) -> Mapping[tuple[str, int], GradedAnswer]:
        """The answers that a file has, by task and repeat, as they were read before the job."""
        return self.read[key]

    def kept(self, key: str) -> Mapping[tuple[str, int], GradedAnswer]:
        """What a file has of the questions as they are now, by task and repeat."""
        known = {task.id: task for task in self.questions.tasks}
        return {
            place: answer
            for place, answer in parse_answers(AnswerFiles(self.folder).lines(key), key).items()
            if answer.task in known and answer.is_of(known[answer.task])
        }

    def missing(self, key: str, repeats: int = 1) -> int:
        """How many answers a file lacks."""
        return self._lacks(self.kept(key), repeats)

    def _lacks(self, kept: Mapping[tuple[str, int], GradedAnswer], repeats: int) -> int:
        return sum(
            (task.id, repeat) not in kept or self.asks_again(task, kept[task.id, repeat])
            for task in self.questions.tasks
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
        """Give the files of these planners, by key, all answers that they lack.

        Raises:
            UsageError: a planner cannot be opened.
            BudgetError: a spend limit refused a call; the answers until then are kept.
        """
        settings = SuiteSettings(
            planner=tuple(planners.values()),
            tasks=(self.table.tasks,),
            pool=(self.table.pool,),
            repeats=repeats,
            concurrency=self.concurrency,
            early_stop=early_stop,
        )
        read = {key: self.kept(key) for key in planners}
        jobs = [
            SuiteJob(settings=settings, table=self.table, entry=entry, seed=0, keys={"": key})
            for key, entry in planners.items()
            if self._lacks(read[key], repeats)
        ]
        results = AnswerFiles(self.folder, on_answer)
        await run_here(jobs, results, TrainingCache(), dispatcher=dispatcher, given=replace(self, read=read))
