"""Makes the calls of judges, with the response cache and the accounts of the workers' calls.

A judge belongs to its task and to no pool. Of the dispatcher's limits, only the budgets in dollars apply to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podium.errors import BudgetError
from podium.executor import Dispatcher, Ledger
from podium.executor.worker_call import first_reservation
from podium.types import Budget, Usage
from podium.workers.base import Reply, Request, Worker, lost


@dataclass(frozen=True, slots=True)
class JudgePayment:
    """Makes a judge's call unless its reply is kept; reserves what it may cost before, and books it after."""

    dispatcher: Dispatcher

    async def __call__(self, worker: Worker, request: Request, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """The kept reply of `worker` to `request`, else what `call` returns.

        Raises:
            BudgetError: the dollars that the run or the day may cost do not suffice.
            WorkerError: the worker failed.
        """

        async def pay() -> Reply:
            ledger = Ledger(Budget(), accounts=self.dispatcher.accounts)
            reservation = first_reservation(worker, request.messages)
            refusal = await ledger.reserve(reservation)
            if refusal is not None:
                raise BudgetError(f"The answer is not judged. {refusal}")
            usage, usd = Usage(), 0.0
            try:
                reply = await call()
                usage, usd = reply.usage, reply.price(worker.profile)
            except BaseException as error:
                usage, usd = lost(error, worker.profile)
                raise
            finally:
                ledger.settle(reservation, usage, usd)
            return reply

        cache = self.dispatcher.cache
        return await (pay() if cache is None else cache.reply(worker, request, pay))
