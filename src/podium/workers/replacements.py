"""Workers that replace another worker in a pool, so that a training or a test can see how a planner copes.

Planners see the profile of the replaced worker. Neither the replaced worker nor its cache is called, and its limits and
cooldowns do not change (`CallState.channel`). Its fallback takes over failed calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from podium.errors import WorkerError
from podium.trace import Reply
from podium.workers.base import COSTLESS, Request, Worker

ENVIRONMENT: Final = "environment"
"""The kind of the errors of a `FailingWorker`. They are part of the exercise, so their rollouts are not left out."""


class FailingWorker(Worker):
    """Replaces `worker`, and fails every call."""

    traits = COSTLESS

    def __init__(self, worker: Worker) -> None:
        self.profile = worker.profile
        self.limits = worker.limits.model_copy(update={"retries": 0, "hedge_quantile": None})
        self.fallback = worker.fallback

    async def answer(self, request: Request) -> Reply:
        del request
        raise WorkerError("It does not answer this question: the pool was drawn so.", kind=ENVIRONMENT)


class SubstituteWorker(Worker):
    """Replaces `worker` with the answers and the price of `other`, like a provider that serves another model under an
    old name."""

    def __init__(self, worker: Worker, other: Worker) -> None:
        self.profile, self.fallback = worker.profile, worker.fallback
        self.limits, self.identity, self.traits = other.limits, other.identity, other.traits
        self._other = other

    async def answer(self, request: Request) -> Reply:
        reply = await self._other.answer(request)
        return replace(reply, cost_usd=reply.cost(self._other.profile))
