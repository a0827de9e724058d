"""A worker that fails every call: it stands in a pool for one that training makes fail (`pool_draw.failing`).

Planners see the profile of the worker that it stands for. Neither that worker nor its cache is called, and its limits
and cooldowns stay as they are (`Dispatcher.channel`). A fallback that is another worker takes over.
"""

from __future__ import annotations

from podium.errors import WorkerError
from podium.types import Limits
from podium.workers.base import Reply, Request, Worker

ENVIRONMENT = "environment"
"""The kind of its failures: they are part of the question, and so not left out as those of infrastructure are."""


class FailingWorker:
    """Stands for `worker`."""

    identity = None
    simulated = True

    def __init__(self, worker: Worker) -> None:
        self.profile = worker.profile
        self.limits: Limits = worker.limits.model_copy(update={"retries": 0, "hedge": None})
        self.fallback = worker.fallback

    async def answer(self, request: Request) -> Reply:
        """Raises WorkerError, always."""
        del request
        raise WorkerError("It does not answer this question: the pool was drawn so.", kind=ENVIRONMENT)

    async def close(self) -> None:
        """Nothing to give back."""
