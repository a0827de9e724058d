"""A machine whose memory holds only some of the models of its workers, so that a call may have to load one.

Calls wait for their model rather than change it one by one: calls that need a loaded model go first, whichever question
makes them. Another is loaded, for the call that waits longest, once a loaded one has no calls left, or once its turn is
over. No model is loaded here; the machine's server does that when it gets a call.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from podium.workers.base import Worker

LONGEST_TURN_S = 60.0
"""A model that has calls gives way after another was waited for so long."""
_LINGER_S = 0.05
"""A model without calls stays for so long before another is loaded: the next step of a question may need it."""


class CallQueue(Protocol):
    """The calls of one worker: those in flight, and those that wait."""

    @property
    def in_flight(self) -> int:
        """Calls that have begun."""
        ...

    @property
    def waiting_since(self) -> float | None:
        """When the call came that has waited longest, on the event loop's clock. None if no call waits for the model,
        since none waits at all, or the first waits for limits of its worker."""
        ...

    def grant(self) -> None:
        """Begin the calls that may begin."""
        ...


class ModelHost:
    """Which models of one machine are believed to be loaded, and whose turn it is. For one event loop.

    Args:
        loaded_at_once: models that its memory holds.
    """

    def __init__(self, loaded_at_once: int) -> None:
        self._loaded_at_once = loaded_at_once
        self._queues: dict[str, list[CallQueue]] = {}
        """Those of each model's workers."""
        self._loaded: dict[str, float] = {}
        """When each loaded model was, the first in front."""
        self._swap: asyncio.TimerHandle | None = None

    @property
    def loaded(self) -> frozenset[str]:
        """The models that need not be loaded first."""
        return frozenset(self._loaded)

    def add(self, model: str, queue: CallQueue) -> None:
        """Count the calls of one more worker."""
        self._queues.setdefault(model, []).append(queue)

    def admits(self, model: str) -> bool:
        """Whether a call of the model may begin now. If not, its queue is told to grant it later."""
        if model in self._loaded:
            if model != self._yielding():
                return True
        elif len(self._loaded) < self._loaded_at_once:
            self._load(model)
            return True
        self._swap_later()
        return False

    def changed(self) -> None:
        """A call has ended, or no longer waits, or is now within the limits of its worker."""
        for model in tuple(self._loaded):
            self._grant(model)
        if self._next() is not None:
            self._swap_later()

    def _next(self) -> tuple[float, str] | None:
        """The model that is loaded next, and since when it is waited for."""
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
        """The loaded model whose turn is over, so that none of its calls begins; or None."""
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
        """Load what is waited for in place of models without calls. Those with calls are looked at when one ends."""
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


def model_of(worker: Worker) -> str:
    """What tells a worker's model from the others of its machine: two workers of one model take its memory once."""
    identity = worker.identity or {}
    named = [str(identity[key]) for key in ("url", "model", "file") if key in identity]
    return " ".join(named) or worker.profile.name
