"""A policy that is a worker: a member of the pool, or an endpoint beside it, conducts untrained.

It is called as any worker is: within its own limits, with retries, behind its circuit breaker. `Conductor` reserves
what a plan may cost in the budget of the question.
"""

from __future__ import annotations

import asyncio

from podium.conductor.policy import Completion, Sampling
from podium.executor import Dispatcher, ExecutionSettings, Ledger, QuestionContext, Reservation
from podium.executor.worker_call import WorkerCall, reservation_for
from podium.trace import Attempt
from podium.types import Budget, Message, Question, estimate_tokens
from podium.workers.base import Request, Worker
from podium.workers.chat.request_body import seed_number
from podium.workers.pool import Pool


class WorkerPolicy:
    """A `Policy` over a worker.

    Args:
        worker: writes the plans. Stays the caller's to close.
        pool: whose plans it writes.
        dispatcher: holds its limits; shared with whoever else calls it. None: one of its own.
        priced: whether its price is known; if not, what it costs is unknown, and not $0.
    """

    def __init__(
        self, worker: Worker, pool: Pool, dispatcher: Dispatcher | None = None, *, priced: bool = True
    ) -> None:
        self._worker = worker
        self._pool = pool
        self._dispatcher = dispatcher or Dispatcher()
        self._priced = priced

    @property
    def name(self) -> str:
        return self._worker.profile.name

    def reservation(self, messages: tuple[Message, ...], sampling: Sampling) -> Reservation:
        """See `PaidPolicy`."""
        del sampling
        tokens = sum(estimate_tokens(message.content) for message in messages)
        return reservation_for(self._worker, input_tokens=tokens, calls=0)

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion, at the worker's own temperature and within its own `max_tokens`.

        Raises:
            WorkerError: the worker did not answer, after all retries.
        """
        context = QuestionContext(
            question=Question(text=messages[-1].content),
            pool=self._pool,
            seed=sampling.seed,
            token="plan",
            ledger=Ledger(Budget()),
            dispatcher=self._dispatcher,
            settings=ExecutionSettings(),
            started=asyncio.get_running_loop().time(),
        )
        # Plans under different seeds are different answers, also where no seed is sent: a response cache keeps each.
        request = Request(messages, seed=sampling.seed, repeat=seed_number(sampling.seed))
        tries: list[Attempt] = []
        call, cache = (
            WorkerCall(context, self._worker, request, tries, calls=1, wait=True),
            self._dispatcher.cache,
        )
        reply = await (call.reply() if cache is None else cache.reply(self._worker, request, call.reply))
        usd = reply.price(self._worker.profile)
        return Completion(
            reply.text,
            reply.usage,
            (0.0 if reply.cached else usd) + sum(attempt.cost_usd for attempt in tries),
            unpriced=not self._priced and reply.cost_usd is None,
            saved_usd=usd if reply.cached else 0.0,
        )
