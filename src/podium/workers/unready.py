"""Stands in a pool for a worker that could not be built, where the pool is only looked at or checked.

Planners see it as they would see the worker; every call fails with the reason. Never in a pool that answers.
"""

from __future__ import annotations

from typing import Any, NoReturn

from podium.errors import ConfigError, WorkerError
from podium.types import Limits, Profile
from podium.workers.base import Request
from podium.workers.worker_spec import WorkerSpec


class UnreadyWorker:
    """Says why there is no worker.

    Args:
        spec: of the worker that it stands for.
        reason: why that could not be built.
    """

    def __init__(self, spec: WorkerSpec, reason: ConfigError) -> None:
        self.profile: Profile = spec.to_profile()
        self.limits: Limits = spec.limits
        self.fallback = spec.fallback
        self.identity: dict[str, Any] = {"kind": getattr(spec, "kind", None)}
        self.reason = str(reason).removeprefix(f"Worker {spec.name!r}: ")

    def __repr__(self) -> str:
        return f"UnreadyWorker({self.profile.name!r})"

    async def answer(self, request: Request) -> NoReturn:
        """Raises `WorkerError` with the reason."""
        del request
        raise WorkerError(self.reason, kind="unready")

    async def close(self) -> None:
        """Nothing to give back."""
