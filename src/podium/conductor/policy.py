"""The policy: the Conductor's language model, behind one small interface.

There are three implementations: `LocalPolicy` runs a checkpoint in this process, `ProcessPolicy` has child processes
run it, and `WorkerPolicy` calls a worker of the pool or an endpoint outside it. A policy writes text; the Conductor
parses it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podium.errors import WorkerError
from podium.executor import Dispatcher, ExecutionSettings, Ledger, QuestionContext
from podium.executor.worker_call import WorkerCall
from podium.trace import Attempt
from podium.types import Budget, Message, Question, Usage, total_usage
from podium.workers.base import Request, Worker
from podium.workers.chat.request_body import seed_number
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a completion is sampled."""

    temperature: float = 0.0
    """0: always the most likely token."""
    max_tokens: int | None = None
    """None: 384, enough for the plans of a checkpoint. A `WorkerPolicy` ignores it and keeps the worker's `Limits`."""
    seed: str = "0"
    """The same seed, messages and checkpoint give the same completion."""
    stop: tuple[str, ...] = ()
    """Texts before which a local completion ends."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The text that a policy wrote, and what it cost."""

    text: str
    usage: Usage = Usage()
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether its price is unknown, so that `cost_usd` leaves it out."""
    saved_usd: float = 0.0
    """For a completion from the response cache: the dollars that it cost when it was written."""
    cut: bool = False
    """Whether it was cut off at the limit of tokens."""
    reasoning: str = ""
    """The model's visible reasoning."""


@runtime_checkable
class PaidPolicy(Protocol):
    """A policy whose completions cost money."""

    async def complete_within(
        self, ledger: Ledger, messages: tuple[Message, ...], sampling: Sampling
    ) -> Completion:
        """As `Policy.complete`; each try reserves in `ledger` the most that it may cost, and settles what it cost.

        Raises:
            WorkerError: as `Policy.complete`, with what all tries cost.
            RefusalError: the budget refuses the first try.
        """
        ...


class Policy(Protocol):
    """Writes completions. Concurrent calls are safe."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion.

        Raises:
            WorkerError: the worker did not answer, after all retries.
            UsageError: the messages are longer than the policy can read.
        """
        ...


class WorkerPolicy:
    """A `Policy` that calls a worker as the executor does: within its limits, with retries and a circuit breaker.

    It is a `PaidPolicy`: each try is paid from the budget of the question.

    Args:
        worker: writes the plans. The caller closes it.
        pool: the pool that the plans are for.
        dispatcher: enforces the worker's limits; shared with the other calls to the pool. None: a new one.
        priced: whether the worker's price is known; if not, plans are reported as unpriced, not as free.
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

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion, at the worker's own temperature and within its own `max_tokens`.

        Raises:
            WorkerError: the worker did not answer, after all retries.
        """
        return await self.complete_within(Ledger(Budget()), messages, sampling)

    async def complete_within(
        self, ledger: Ledger, messages: tuple[Message, ...], sampling: Sampling
    ) -> Completion:
        """See `PaidPolicy`."""
        context = QuestionContext(
            question=Question(text=messages[-1].content),
            pool=self._pool,
            seed=sampling.seed,
            token="plan",
            ledger=ledger,
            dispatcher=self._dispatcher,
            settings=ExecutionSettings(),
            started=asyncio.get_running_loop().time(),
        )
        # `duplicate` makes the response cache keep one plan for each seed, even for workers that are sent no seed.
        request = Request(
            messages, seed=sampling.seed, duplicate=seed_number(sampling.seed), thoughts_alone=True
        )
        tries: list[Attempt] = []
        call = WorkerCall(context, self._worker, request, tries, calls=0, wait=True)
        cache = self._dispatcher.cache
        try:
            reply = await (call.reply() if cache is None else cache.reply(self._worker, request, call.reply))
        except (WorkerError, asyncio.CancelledError) as error:
            vars(error)["usage"] = total_usage(attempt.usage for attempt in tries)
            vars(error)["cost_usd"] = sum(attempt.cost_usd for attempt in tries)
            raise
        usd = reply.price(self._worker.profile)
        cut = reply.finish == "length"
        return Completion(
            # Some models write the whole plan inside a thought. A thought that was cut off has no plan.
            reply.text if reply.text.strip() or cut else reply.reasoning,
            total_usage([reply.usage, *(attempt.usage for attempt in tries)]),
            (0.0 if reply.cached else usd) + sum(attempt.cost_usd for attempt in tries),
            unpriced=not self._priced and reply.cost_usd is None,
            saved_usd=usd if reply.cached else 0.0,
            cut=cut,
            reasoning=reply.reasoning,
        )
