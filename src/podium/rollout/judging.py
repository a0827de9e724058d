"""Grades answers, and makes the calls of judges with the response cache and the spend limits of the workers' calls.

A judge belongs to its task and to no pool. Of the dispatcher's limits, only the budgets in dollars apply to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from podium.calls import Dispatcher, Ledger
from podium.calls.worker_call import first_reservation
from podium.errors import BudgetError, GraderError, RefusalError
from podium.tasks.graders.base import GraderSettings
from podium.tasks.task import Grade, Task
from podium.trace import Reply
from podium.types import Budget, Spent
from podium.workers.base import Request, Worker


@dataclass(slots=True)
class JudgePayment:
    """Makes a judge's call unless its reply is kept; reserves what it may cost before, and settles it after."""

    dispatcher: Dispatcher
    charged_usd: float = 0.0
    """Dollars that were charged."""

    def open_ledger(self) -> Ledger:
        """A ledger that charges the dispatcher's spend limits."""
        return Ledger(Budget(), spend_limits=self.dispatcher.spend_limits)

    async def __call__(self, worker: Worker, request: Request, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """The kept reply of `worker` to `request`, else what `call` returns.

        Raises:
            BudgetError: the dollars that the run or the day may cost do not suffice.
            WorkerError: the worker failed.
        """

        async def pay() -> Reply:
            ledger = self.open_ledger()
            try:
                async with ledger.paying(first_reservation(worker, request.messages), request.receipt):
                    reply = await call()
                    request.receipt.spent = reply.spent(worker.profile)
                    return reply
            except RefusalError as refusal:
                raise BudgetError(f"The answer is not judged. {refusal}") from None
            finally:
                self.charged_usd += ledger.usd

        return await self.dispatcher.cached(worker, request, pay)


async def grade_answer(task: Task, answer: str | None, dispatcher: Dispatcher) -> Grade:
    """Grade the answer. Each call of a judge is paid by the dispatcher's spend limits. No answer has score 0.

    Only here does a grader's failure become data.

    Raises:
        BudgetError: a spend limit refused a judge's call.
    """
    if answer is None:
        return Grade(score=0.0)
    payment = JudgePayment(dispatcher)
    if isinstance(task.grader, GraderSettings):
        task = replace(task, grader=task.grader.paid_by(payment))
    try:
        grade = await task.grade(answer)
    except GraderError as error:
        grade = Grade(score=0.0, cost_usd=error.cost_usd, failure=str(error))
    # A grader of another package may call a model by itself; then its cost is known only now.
    if (uncharged_usd := grade.cost_usd - payment.charged_usd) > 0:
        payment.open_ledger().record(Spent(cost_usd=uncharged_usd))
    return grade
