"""The gate before a worker: how many calls at once, requests a minute, tokens a minute.

One `Gates` serves all questions that share a pool; an orchestrator makes its own unless it is handed one.
Limits hold within one process: two processes with the same key need half the limits each.
"""

from __future__ import annotations

import asyncio

from aiolimiter import AsyncLimiter

from podium.types import Limits
from podium.workers.base import Worker

_BURST_S = 6.0
"""A bucket holds this many seconds' worth, so that no minute sees much more than its limit."""


class Gate:
    """The limits of one worker, shared by all its callers on one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.slots = asyncio.Semaphore(limits.concurrency)
        """Entered around a call."""
        self._requests = None if limits.rpm is None else _bucket(limits.rpm)
        self._tokens = None if limits.tpm is None else _bucket(limits.tpm)

    async def admit(self, tokens: int) -> None:
        """Wait until one more request of at most `tokens` is within the limits a minute."""
        if self._requests is not None:
            await self._requests.acquire()
        if self._tokens is not None:
            # A call larger than the bucket waits for a full one: it cannot be made in parts.
            await self._tokens.acquire(min(tokens, self._tokens.max_rate))


class Gates:
    """The gates of all workers, by name, made when first needed."""

    def __init__(self) -> None:
        self._gates: dict[str, Gate] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def of(self, worker: Worker) -> Gate:
        """The gate of `worker` on the running event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # Waiters belong to their loop; a new `asyncio.run` starts afresh.
            self._gates, self._loop = {}, loop
        name = worker.profile.name
        gate = self._gates.get(name)
        if gate is None:
            gate = self._gates[name] = Gate(worker.limits)
        return gate


def _bucket(per_minute: float) -> AsyncLimiter:
    size = max(1.0, per_minute * _BURST_S / 60)
    return AsyncLimiter(size, size * 60 / per_minute)
