"""Lets each worker answer every question within the budget, and reads the answers as arrays.

If a study was killed or ran out of money, the same command continues it and asks nothing twice. Questions that some
worker has not answered are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from podium.calls import CallState
from podium.errors import UsageError
from podium.evals.answer_files import ShowProgress, answer_matrix
from podium.evals.question_table import AskingProgress, QuestionTable, ask_each_alone
from podium.evals.study.judges import NearMisses, by_agreement, near_misses
from podium.evals.study.questions import JudgedBy
from podium.evals.study.study_estimate import REPEATED, most_samples
from podium.planners.answer_matrix import AnswerMatrix
from podium.rollout import Rollout
from podium.spending.spend_limit import InMemorySpendLimit
from podium.tasks import Task

_ENOUGH = 0.5
"""A worker is left out of the study if it answered less than this share of the busiest worker's answers."""


async def ask_workers(
    table: QuestionTable,
    *,
    repeats: int,
    reached: int,
    budget_usd: float | None,
    call_state: CallState,
    show: ShowProgress,
) -> AskingProgress:
    """Ask every worker every question, and a fifth of the questions twice if `repeats` is 1.

    Args:
        reached: how many questions the budget is likely to reach. A fifth of these is repeated.
        budget_usd: the most dollars of this start. If it is None, only the call state's spend limits hold.

    Raises:
        UsageError: no worker answered anything.
    """
    tasks = table.questions
    twice = round(REPEATED * reached) if repeats == 1 < most_samples(table.pool) else 0
    # Questions with repeats come first, so that a budget that ends early still has first and second answers.
    parts = [table.with_questions(tasks[:twice], 2), table.with_questions(tasks[twice:], repeats)]
    if budget_usd is not None:
        limit = InMemorySpendLimit(
            budget_usd, name=f"this start's ${budget_usd:g}", way_out="raise the run's budget"
        )
        call_state = call_state.with_spend_limits(limit)
    progress = await ask_each_alone(parts, call_state, show)
    if not progress.kept:
        reasons = [f"{name}: {error.removeprefix(f'{name}: ')}" for name, error in progress.errors.items()]
        raise UsageError(
            f"No worker answered. {' '.join(reasons) or progress.refusal or 'There was nothing to ask.'}"
        )
    return progress


KeptAnswers = Mapping[tuple[str, int], Rollout]
"""The answers of one worker by task and sample."""
AnswersByTask = Mapping[str, Sequence[Rollout]]


@dataclass(frozen=True)
class StudyAnswers:
    answers: AnswerMatrix
    """The answers to questions that every worker answered. Each has one sample, unless all have more."""
    repeated: AnswerMatrix
    """All answers, including second answers if there are any."""
    tasks: tuple[Task, ...]
    notes: tuple[str, ...]
    misjudged: NearMisses
    """Right answers that graders of texts may have judged wrong."""
    cost_usd: float
    """Dollars of all kept answers, as if nothing had been cached."""

    @classmethod
    def read(cls, table: QuestionTable, judged_by: JudgedBy = "golds", repeats: int = 1) -> Self:
        """Read the kept answers.

        Args:
            repeats: how many answers each worker was to give to each question.

        Raises:
            UsageError: fewer than two questions have an answer with a verdict from every worker.
        """
        by_others = judged_by == "agreement"
        by_worker = {name: _kept(table, name) for name in table.pool.answering}
        counted, notes = _counted(by_worker, needs_verdict=not by_others)
        tasks = tuple(
            task for task in table.questions if all(task.id in by_task for by_task in counted.values())
        )
        answered = {task for answers in by_worker.values() for task, _ in answers}
        if left_out := len(answered) - len(tasks):
            notes.append(
                f"{left_out:,} of {len(answered):,} questions are left out, since a worker did not answer them or an "
                "answer has no verdict."
            )
        if len(tasks) < 2:
            judging = ", and the judge has to end its replies with RIGHT or WRONG" * ("judge" in judged_by)
            raise UsageError(
                f"Too few questions have an answer with a verdict from every worker ({len(tasks)}); give more "
                f"questions or a larger --run-budget-usd{judging}."
            )
        answers = repeated = _matrix(counted, tasks)
        if repeated.own_samples_QW is not None:  # Votes must not count a copy as a second answer.
            answers = _matrix(counted, tasks, most=1)
            short = sum(any(len(by_task[t.id]) < repeats for by_task in counted.values()) for t in tasks)
            if repeats > 1:
                notes.append(
                    f"Methods count one answer of each worker to each question, since {short:,} of {len(tasks):,} "
                    f"questions lack one of {repeats} answers or its verdict; the same command asks for these again."
                )
        if by_others:
            answers, repeated = by_agreement(answers), by_agreement(repeated)
        misjudged = near_misses((task, by_task[task.id]) for by_task in counted.values() for task in tasks)
        cost_usd = sum(one.trace.uncached_usd for kept in by_worker.values() for one in kept.values())
        return cls(answers, repeated, tasks, tuple(notes), misjudged, cost_usd)


def _counted(
    by_worker: Mapping[str, KeptAnswers], *, needs_verdict: bool
) -> tuple[dict[str, AnswersByTask], list[str]]:
    """The answers that count, by worker and task, and a note on each worker that is left out."""
    counts = {name: len({task for task, _ in answers}) for name, answers in by_worker.items()}
    enough = _ENOUGH * max(counts.values())
    counted: dict[str, AnswersByTask] = {}
    notes = []
    for name, count in counts.items():
        if count < enough:
            notes.append(f"{name} is left out of the study: it answered {count:,} questions.")
            continue
        by_task = defaultdict[str, list[Rollout]](list)
        for (task, _), answer in by_worker[name].items():
            if not needs_verdict or answer.grade.failure is None:
                by_task[task].append(answer)
        counted[name] = by_task
    return counted, notes


def _matrix(
    counted: Mapping[str, AnswersByTask], tasks: Sequence[Task], most: int | None = None
) -> AnswerMatrix:
    """The answers to these tasks, at most `most` of each worker to each task."""
    return answer_matrix(
        {name: [by_task[task.id][:most] for task in tasks] for name, by_task in counted.items()}
    )


def _kept(table: QuestionTable, worker: str) -> KeptAnswers:
    answers = table.alone(worker).kept_answers()
    return {slot: answer for slot, answer in answers.items() if answer.trace.answer is not None}
