"""Grades answers. A judge's calls use the response cache and the spend limits of the workers' calls.

A judge belongs to its task and not to a pool. Of the dispatcher's limits, only the budgets in dollars apply to a judge.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from podium.calls import CallContext, Dispatcher, Ledger
from podium.errors import BudgetError, GraderError, RefusalError
from podium.tasks.graders.base import GraderSettings
from podium.tasks.task import Grade, Task
from podium.types import Budget, Spent


async def grade_answer(task: Task, answer: str | None, dispatcher: Dispatcher) -> Grade:
    """Grade the answer. The dispatcher's spend limits pay for each call of a judge. If there is no answer, the score is
    0.

    Only here does a grader's failure become data.

    Raises:
        BudgetError: a spend limit refused a judge's call.
    """
    if answer is None:
        return Grade(score=0.0)
    ledger = Ledger(Budget(), spend_limits=dispatcher.spend_limits)
    if isinstance(task.grader, GraderSettings):
        context = CallContext(
            ledger=ledger,
            dispatcher=dispatcher,
            queue_key=task.id,
            started=asyncio.get_running_loop().time(),
        )
        task = replace(task, grader=task.grader.called_in(context))
    try:
        grade = await task.grade(answer)
    except RefusalError as refusal:
        raise BudgetError(f"The answer is not judged. {refusal}") from None
    except GraderError as error:
        if dispatcher.refusal is not None:  # A judge's call was not tried again.
            raise BudgetError(f"The answer is not judged. {dispatcher.refusal}") from None
        grade = Grade(score=0.0, cost_usd=error.cost_usd, failure=str(error))
    # A grader of another package may call a model by itself. Then its cost is known only now.
    if (uncharged_usd := grade.cost_usd - ledger.totals.usd) > 0:
        ledger.charge(Spent(cost_usd=uncharged_usd))
    return grade
