"""Asks each worker of a table alone, for recordings and studies, by jobs of a suite.

If a start is killed, a call fails or the budget ends, the next start of the same command asks the missing questions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from podium.calls import Dispatcher
from podium.calls.dispatcher import RESPONSES, open_dispatcher
from podium.errors import BudgetError
from podium.evals.suite.question_table import QuestionTable
from podium.evals.suite.suite_run import ShowProgress, accuracy_so_far
from podium.rollout import Rollout
from podium.team.settings import TeamSettings
from podium.trace import Trace
from podium.types import MAX_USD
from podium.workers.base import has_paid_workers
from podium.workers.pool import Pool
from podium.workers.spend_limit import SpendLimit


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


def failure_of(trace: Trace) -> str:
    """A sentence that says why there is no answer."""
    errors = (span.error for span in trace.spans if span.error is not None)
    return next(errors, trace.error or "It gave no answer.")


class StartLimit(SpendLimit):
    """The calls and the seconds of one start, as a spend limit. Each try of a worker or judge is a call.

    Args:
        calls, seconds: the most calls and seconds. None sets no limit.
    """

    def __init__(self, calls: int | None, seconds: float | None) -> None:
        super().__init__(MAX_USD, name="this start's dollars", way_out="start again")
        self._calls, self._seconds, self._made = calls, seconds, 0
        self._began = time.monotonic()

    def reserve(self, usd: float) -> str | None:
        """Reserve the dollars of a call, or say in a sentence which limit it could break."""
        if self._seconds is not None and time.monotonic() - self._began >= self._seconds:
            return f"The time limit of {self._seconds:g} s was reached."
        if self._calls is not None and self._made >= self._calls:
            return f"The budget of {self._calls} calls is used up."
        self._made += 1
        return super().reserve(usd)

    def may_fit_later(self, usd: float) -> bool:
        """No: the end of a call makes no room for another call."""
        return False


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
    parts: Sequence[tuple[QuestionTable, int]], dispatcher: Dispatcher, show: ShowProgress
) -> AskingProgress:
    """Ask every worker that is no tool every question of each table, so many times.

    Args:
        parts: tables over the same workers, with the number of answers to each question.
        dispatcher: once one of its spend limits refuses a call, no more calls are made.
    """
    (first, _), *_ = parts
    workers = dict(map(first.single_worker_entry, first.pool.answering))
    wanted = len(workers) * sum(repeats * len(part.questions) for part, repeats in parts)
    missing = sum(part.missing(key, repeats) for part, repeats in parts for key in workers)
    progress = AskingProgress(wanted, wanted - missing)
    so_far = accuracy_so_far(show, missing, dispatcher)

    def answered(label: str, answer: Rollout) -> None:
        if answer.trace.answer is None:
            progress.failed += 1
            progress.errors[label] = failure_of(answer.trace)
        else:
            progress.kept += 1
        so_far(label, answer)

    try:
        for part, repeats in parts:
            await part.answer(workers, dispatcher, answered, repeats=repeats)
    except BudgetError as error:
        progress.refusal = dispatcher.refusal or str(error)
    return progress
