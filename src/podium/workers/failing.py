"""Workers that take the place of another one in a pool, so that a training or a test can see how a planner copes.

Planners see the profile of that worker. Neither that worker nor its cache is called, and its limits
and cooldowns stay as they are (`Dispatcher.channel`). A fallback that is another worker takes over failed calls.
"""

from __future__ import annotations

from dataclasses import replace

from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import Limits
from podium.workers.base import Request, Worker
from podium.workers.traits import WRITTEN, traits_of

ENVIRONMENT = "environment"
"""The kind of its failures. They are part of the question, so such rollouts are not left out."""


class FailingWorker:
    """Takes the place of `worker`, and fails every call."""

    identity = None
    traits = WRITTEN

    def __init__(self, worker: Worker) -> None:
        self.profile = worker.profile
        self.limits: Limits = worker.limits.model_copy(update={"retries": 0, "hedge_quantile": None})
        self.fallback = worker.fallback

    async def answer(self, request: Request) -> Reply:
        """Raises WorkerError, always."""
        del request
        raise WorkerError("It does not answer this question: the pool was drawn so.", kind=ENVIRONMENT)

    async def close(self) -> None:
        """Nothing to close."""


class ReplacedWorker:
    """Takes the place of `worker`, and gives the answers of `other` at its price, like a provider that serves another
    model under an old name."""

    def __init__(self, worker: Worker, other: Worker) -> None:
        self.profile, self.fallback = worker.profile, worker.fallback
        self.limits, self.identity, self.traits = other.limits, other.identity, traits_of(other)
        self._other = other

    async def answer(self, request: Request) -> Reply:
        """The other worker's answer, or its `WorkerError`."""
        reply = await self._other.answer(request)
        return replace(reply, cost_usd=reply.price(self._other.profile))

    async def close(self) -> None:
        """Nothing to close: the pool has the other worker, too."""
