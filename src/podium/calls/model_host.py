"""Orders calls to a machine whose memory holds only some of its workers' models, so that models change seldom.

Calls that need a loaded model go first, whichever question makes them. Another model is loaded, for the call that waits
longest, once a loaded model has no calls left or its turn is over. The machine's server loads the model when it gets a
call. Nothing here does.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from podium.workers.base import Worker

LONGEST_TURN_S = 60.0
"""A loaded model gives way after calls have waited this long for another model, even if it still has calls."""
_LINGER_S = 0.05
"""A loaded model without calls stays this long, since the next step of a question may need it."""


class CallQueue(Protocol):
    """The calls of one worker that are in flight or wait."""

    @property
    def in_flight(self) -> int:
        """Calls that have begun."""
        ...

    @property
    def waiting_since(self) -> float | None:
        """When the call came that has waited longest for the model, on the event loop's clock. None if no call waits,
        or if the first call still waits for its worker's limits."""
        ...

    def grant(self) -> None:
        """Begin the waiting calls that may begin."""
        ...


class ModelHost:
    """Which models one machine has most likely loaded, and which may take calls. It belongs to one event loop.

    Args:
        loaded_at_once: how many models the machine's memory holds.
    """

    def __init__(self, loaded_at_once: int) -> None:
        self._loaded_at_once = loaded_at_once
        self._queues: dict[str, list[CallQueue]] = {}
        """The queues of each model's workers."""
        self._loaded: dict[str, float] = {}
        """When each loaded model was loaded. The earliest comes first."""
        self._swap: asyncio.TimerHandle | None = None

    @property
    def loaded(self) -> frozenset[str]:
        """The models that need not be loaded first."""
        return frozenset(self._loaded)

    def add(self, model: str, queue: CallQueue) -> None:
        """Add the queue of one more worker of the model."""
        self._queues.setdefault(model, []).append(queue)

    def admits(self, model: str) -> bool:
        """Whether a call of the model may begin now. If not, the model's queues are told later to begin calls."""
        if model in self._loaded:
            if model != self._yielding():
                return True
        elif len(self._loaded) < self._loaded_at_once:
            self._load(model)
            return True
        self._swap_later()
        return False

    def grant_waiting(self) -> None:
        """Begin calls that may begin now: a call has ended, stopped waiting, or come within its worker's limits."""
        for model in tuple(self._loaded):
            self._grant(model)
        if self._next() is not None:
            self._swap_later()

    def _next(self) -> tuple[float, str] | None:
        """The model that is loaded next, and since when a call has waited for it. None if no call waits."""
        return min(
            (
                (since, model)
                for model, queues in self._queues.items()
                if model not in self._loaded
                for queue in queues
                if (since := queue.waiting_since) is not None
            ),
            default=None,
        )

    def _yielding(self) -> str | None:
        """The loaded model whose turn is over, so that none of its calls begins. None if no turn is over."""
        following = self._next()
        if following is None or not self._loaded:
            return None
        model, since = next(iter(self._loaded.items()))
        waited_s = asyncio.get_running_loop().time() - max(since, following[0])
        return model if waited_s > LONGEST_TURN_S else None

    def _load(self, model: str) -> None:
        self._loaded[model] = asyncio.get_running_loop().time()

    def _grant(self, model: str) -> None:
        for queue in self._queues[model]:
            queue.grant()

    def _swap_later(self) -> None:
        if self._swap is None:
            self._swap = asyncio.get_running_loop().call_later(_LINGER_S, self._swap_now)

    def _swap_now(self) -> None:
        """Replace loaded models that have no calls by models that calls wait for."""
        self._swap = None
        for _ in range(self._loaded_at_once):
            if (following := self._next()) is None:
                return
            if len(self._loaded) >= self._loaded_at_once:
                idle = next(filter(self._is_idle, self._loaded), None)
                if idle is None:
                    return
                del self._loaded[idle]
            self._load(following[1])
            self._grant(following[1])

    def _is_idle(self, model: str) -> bool:
        queues = self._queues[model]
        waits = model != self._yielding() and any(queue.waiting_since is not None for queue in queues)
        return not waits and not any(queue.in_flight for queue in queues)


def model_key(worker: Worker) -> str:
    """A name for the worker's model on its machine. Two workers with the same name share one loaded model."""
    identity = worker.identity or {}
    named = [str(identity[key]) for key in ("url", "model", "file") if key in identity]
    return " ".join(named) or worker.profile.name
