"""A table of questions and open workers, whose answers are kept in a folder, for studies and recordings.

The questions may change between two starts: more questions, another text, another right answer, another grader. So a
kept answer counts only for the question to which it was given, as long as the same grader judges it. If a start is
killed, a call fails or the budget ends, the next start of the same command asks the missing questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

from podium.calls import CallState
from podium.calls.call_state import RESPONSES, open_call_state
from podium.errors import BudgetExceededError
from podium.evals.answer_files import AnswerFiles, OnAnswer, ShowProgress, accuracy_so_far, answers_key
from podium.evals.evaluation import EvaluationJob, evaluate_together, evaluation_runner, is_missing
from podium.rollout import Rollout
from podium.tasks import Task
from podium.team.settings import PlannerChoice, TeamSettings
from podium.team.team import Team
from podium.trace import Trace
from podium.types import Budget
from podium.workers.base import has_paid_workers
from podium.workers.pool import Pool


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
    seed: int = 0
    """Seeds what workers draw."""

    def with_questions(self, questions: Sequence[Task], repeats: int = 1) -> Self:
        """The table with other questions, such as a part of its own, and so many answers to each."""
        return replace(self, questions=questions, repeats=repeats)

    def alone(self, name: str) -> TablePlanner:
        """The planner by which a worker answers alone."""
        key = answers_key(name, [name, self.pool.named(name).identity])
        team = self.team.with_planner(PlannerChoice(planner=f"single:{name}"))
        return TablePlanner(self, key, name, team, name)


@dataclass(frozen=True)
class TablePlanner:
    """A planner that answers the questions of a table."""

    table: QuestionTable
    key: str
    label: str
    team: TeamSettings
    worker: str | None = None
    """The worker that answers alone. None for another planner."""

    def kept_answers(self) -> Mapping[tuple[str, int], Rollout]:
        """The kept answers to the table's present questions, by task and sample, also those in which a call failed."""
        known = {task.id: task for task in self.table.questions}
        return {
            slot: answer
            for slot, answer in AnswerFiles(self.table.folder).answers(self.key).items()
            if answer.task in known and answer.matches(known[answer.task])
        }

    def complete_answers(self) -> Mapping[tuple[str, int], Rollout]:
        """The kept answers without those in which a call failed. They are not made again."""
        return {slot: answer for slot, answer in self.kept_answers().items() if not answer.worker_failed}

    def missing(self, complete: Mapping[tuple[str, int], Rollout] | None = None) -> int:
        """How many answers or verdicts are still to be made.

        Args:
            complete: the answers that count. Default: they are read.
        """
        table, found = self.table, self.complete_answers() if complete is None else complete
        return sum(
            is_missing(found.get((task.id, sample)), judged=table.judged)
            for task in table.questions
            for sample in range(table.repeats)
        )


async def answer_table(
    planners: Sequence[TablePlanner],
    call_state: CallState,
    on_answer: OnAnswer = lambda label, answer: None,
) -> None:
    """Add all missing answers of planners of one table to their files.

    Raises:
        UsageError: a planner cannot be opened.
        BudgetExceededError: a spend limit refused a call. The answers until then are kept.
    """
    table = planners[0].table
    files = AnswerFiles(table.folder, on_answer)
    jobs: list[EvaluationJob] = []
    async with AsyncExitStack() as teams:
        for planner in planners:
            complete = planner.complete_answers()
            if not planner.missing(complete):
                continue
            team = Team.from_settings(
                planner.team, table.pool, call_state=call_state, seed=str(table.seed), for_evaluation=True
            )
            teams.push_async_callback(team.release)
            jobs.append(
                EvaluationJob(
                    evaluation_runner(team, Budget()),
                    table.questions,
                    pool_for=table.rated,
                    alone=planner.worker,
                    repeats=table.repeats,
                    seed=str(table.seed),
                    kept=complete,
                    judged=table.judged,
                    on_rollout=partial(files.add, planner.key, planner.label),
                )
            )
        await evaluate_together(jobs, concurrency=table.concurrency)


def open_run_call_state(
    team: TeamSettings, pool: Pool, folder: Path, *, pays: bool = False
) -> AbstractContextManager[CallState]:
    """The call state of a run, whose folder keeps all answers.

    Args:
        pays: whether something besides workers costs money.
    """
    return open_call_state(
        paid_workers=has_paid_workers(pool),
        run=folder,
        run_usd=team.budget.run_usd,
        day_usd=team.budget.day_usd,
        cache=team.cache or folder / RESPONSES,
        replay=team.replay,
        pays=pays,
    )


@dataclass(slots=True)
class AskingProgress:
    """How far one start has come."""

    wanted: int
    """How many responses there will be in the end."""
    kept: int
    """How many responses are kept, including those of earlier starts."""
    failed: int = 0
    """Calls of this start that failed for good."""
    errors: dict[str, str] = field(default_factory=dict)
    """Why the latest failed call of each worker failed."""
    refusal: str | None = None
    """Why no more calls are made. None if all calls were made."""

    def count(self, worker: str, answer: Rollout) -> None:
        if answer.trace.answer is None:
            self.failed += 1
            self.errors[worker] = failure_of(answer.trace)
        else:
            self.kept += 1


def failure_of(trace: Trace) -> str:
    """A sentence that says why there is no answer."""
    errors = (span.error for span in trace.spans if span.error is not None)
    return next(errors, trace.error or "It gave no answer.")


async def ask_each_alone(
    parts: Iterable[QuestionTable], call_state: CallState, show: ShowProgress
) -> AskingProgress:
    """Ask every worker that is no tool every question of each table.

    Args:
        call_state: once one of its spend limits refuses a call, no more calls are made.
    """
    asked = [[part.alone(name) for name in part.pool.answering] for part in parts]
    workers = [worker for of_part in asked for worker in of_part]
    wanted = sum(worker.table.repeats * len(worker.table.questions) for worker in workers)
    missing = sum(worker.missing() for worker in workers)
    progress = AskingProgress(wanted, wanted - missing)
    so_far = accuracy_so_far(show, missing, call_state)

    def answered(label: str, answer: Rollout) -> None:
        progress.count(label, answer)
        so_far(label, answer)

    try:
        for of_part in asked:
            await answer_table(of_part, call_state, answered)
    except BudgetExceededError as error:
        progress.refusal = call_state.refusal or str(error)
    return progress
