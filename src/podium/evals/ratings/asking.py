"""Asking each worker alone each question, for recordings and studies: the progress, and the budget of one start."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Self

from podium.calls import Dispatcher, Ledger
from podium.calls.ledger import Reservation
from podium.calls.spend_limits import UNLIMITED_USD, SharedSpendLimit
from podium.errors import BudgetError
from podium.rollout.judging import grade_answer
from podium.tasks.task import Grade, Task
from podium.trace import Trace
from podium.types import Budget


@dataclass(slots=True)
class AskingProgress:
    """The progress of one start. What it leaves out, the next start of the same command asks."""

    wanted: int
    """Responses that there are in the end."""
    kept: int
    """Responses that are kept, those of earlier starts included."""
    usd: float = 0.0
    """Dollars of this start, judging included."""
    worker: str | None = field(default=None, compare=False)
    """Who answered last, or failed to."""
    failed: int = 0
    """Calls of this start that failed for good."""
    errors: dict[str, str] = field(default_factory=dict)
    """Why the latest failed call of each worker failed."""
    refusal: str | None = None
    """Why no more calls are made; None: all calls were made."""
    left_out: tuple[str, ...] = ()
    """A sentence about each sort of question that is left out."""

    @property
    def ended(self) -> int:
        """Responses that are kept, and calls that failed."""
        return self.kept + self.failed

    def fail(self, worker: str, trace: Trace) -> None:
        """Count a call that failed for good."""
        self.failed += 1
        self.errors[worker] = failure_of(trace)

    def __str__(self) -> str:
        """Who answered last, and the dollars so far."""
        spent = f", ${self.usd:.4f} so far" if self.usd else ""
        return "Asking the workers" if self.worker is None else f"Asking {self.worker}{spent}"


def failure_of(trace: Trace) -> str:
    """A sentence that says why there is no answer."""
    errors = (span.error for span in trace.spans if span.error is not None)
    return next(errors, trace.error or "It gave no answer.")


class RunBudget:
    """The budget of a run: its calls and seconds, and its dollars, which each try of a worker or a judge reserves. A
    try that could exceed the dollars waits until those in flight have settled. If it still could, it is refused, and
    no more calls are made.

    Args:
        dispatcher: its spend limits may refuse calls too.
    """

    def __init__(self, budget: Budget, dispatcher: Dispatcher) -> None:
        self.refusal: str | None = None
        """Why no more calls are made; None: calls may be made."""
        self._clock = asyncio.get_running_loop().time
        deadline = None if budget.seconds is None else self._clock() + budget.seconds
        self._calls = Ledger(Budget(calls=budget.calls, seconds=budget.seconds), deadline)
        self._dollars = SharedSpendLimit(None, "run", UNLIMITED_USD if budget.usd is None else budget.usd)
        self.dispatcher = dispatcher.charging(self._dollars)
        """Its calls are charged to this budget."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._dollars.close()

    @property
    def spent_usd(self) -> float:
        """Dollars spent so far."""
        return self._dollars.spent_usd

    def take_call(self) -> bool:
        """Count one call of a worker, whose retries are none of their own. Returns False if none is left."""
        self.refusal = self.refusal or self._calls.try_reserve(Reservation(1, 0, 0.0), self._clock())
        return self.refusal is None

    def refused(self) -> bool:
        """Whether a spend limit has refused a call. Then no more calls are made; those in flight end normally."""
        self.refusal = self.refusal or self.dispatcher.refusal
        return self.refusal is not None

    async def grade(self, task: Task, response: str) -> Grade | None:
        """Grade a response; None: the budget refused the judge."""
        try:
            return await grade_answer(task, response, self.dispatcher)
        except BudgetError as error:
            self.refusal = self.refusal or str(error)
            return None
