"""The policy: the Conductor's language model, behind one small interface.

Two implementations: a checkpoint on this machine (`local_policy`), and `WorkerPolicy`, which is a worker: a member of
the pool, or an endpoint beside it, that conducts untrained. A policy writes text. It does not know what a workflow is,
and does not parse.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podium.executor import Dispatcher, ExecutionSettings, Ledger, QuestionContext, Reservation
from podium.executor.worker_call import WorkerCall, reservation_for
from podium.trace import Attempt
from podium.types import Budget, Message, Question, Usage, estimate_tokens
from podium.workers.base import Request, Worker
from podium.workers.chat.request_body import seed_number
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a completion is drawn."""

    temperature: float = 0.0
    """0: always the most likely token."""
    max_tokens: int | None = None
    """None: 384, which is enough for the plans of a checkpoint. A worker keeps to its own `Limits`."""
    seed: str = "0"
    """Names the randomness: the same seed, messages and checkpoint give the same completion."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a policy wrote."""

    text: str
    usage: Usage = Usage()
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether it cost dollars at an unknown price."""
    saved_usd: float = 0.0
    """Dollars that it had cost when it was made, where it is from the response cache."""


@runtime_checkable
class PaidPolicy(Protocol):
    """A policy whose completions cost money or tokens of a budget."""

    def reservation(self, messages: tuple[Message, ...], sampling: Sampling) -> Reservation:
        """The most that this completion may cost."""
        ...


class Policy(Protocol):
    """Completes messages. Concurrent calls are safe."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion.

        Raises:
            WorkerError: the worker did not answer, after all retries.
            UsageError: the messages do not fit into what the policy can read.
        """
        ...


class WorkerPolicy:
    """A `Policy` over a worker, which is called as any worker is: within its limits, with retries, behind its breaker.

    It is a `PaidPolicy`: `Conductor` reserves what a plan may cost in the budget of the question.

    Args:
        worker: writes the plans. Stays the caller's to close.
        pool: whose plans it writes.
        dispatcher: holds its limits; shared with the pool's other calls. None: one of its own.
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
        call = WorkerCall(context, self._worker, request, tries, calls=1, wait=True)
        cache = self._dispatcher.cache
        reply = await (call.reply() if cache is None else cache.reply(self._worker, request, call.reply))
        usd = reply.price(self._worker.profile)
        return Completion(
            reply.text,
            reply.usage,
            (0.0 if reply.cached else usd) + sum(attempt.cost_usd for attempt in tries),
            unpriced=not self._priced and reply.cost_usd is None,
            saved_usd=usd if reply.cached else 0.0,
        )
