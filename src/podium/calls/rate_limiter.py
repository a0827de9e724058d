"""The limits of one worker: concurrent calls, requests a minute, tokens a minute, and turns of its model.

Calls that wait take turns by their queue key. The limits apply within one process: if two processes use the same API
key, give each of them half of the limits. `ModelHost` orders calls to a machine whose memory holds only some of its
workers' models, so that models change seldom, and calls to models of which each takes all cores.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from weakref import WeakSet

from podium.types import Limits
from podium.workers.base import Worker

_LINGER_S = 0.05
"""A loaded model without calls stays this long, since the next step of a question may need it."""


@dataclass(slots=True)
class WindowEntry:
    """The requests or tokens of one call in a window."""

    at: float
    amount: float


class SlidingWindow:
    """A sliding window: in no stretch of `seconds` does it admit more than `limit`.

    An amount larger than the limit is admitted when the window is empty, because a call cannot be split.
    """

    def __init__(self, limit: float, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._entries: deque[WindowEntry] = deque()
        self._total = 0.0

    def total(self, now: float) -> float:
        """The sum of the amounts in the window."""
        while self._entries and self._entries[0].at <= now - self._seconds:
            self._total -= self._entries.popleft().amount
        if not self._entries:
            self._total = 0.0  # Subtracting floats leaves rounding errors.
        return self._total

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until `amount` fits if nothing else is admitted meanwhile. 0 if it fits now."""
        room = self._limit - self.total(now)
        if amount <= room or not self._entries:
            return 0.0
        for entry in self._entries:
            room += entry.amount
            if amount <= room:
                break
        return max(0.0, entry.at + self._seconds - now)

    def add(self, amount: float, now: float) -> WindowEntry:
        """Admit `amount`."""
        self.total(now)  # Drops entries that have left the window: a worker may be called for weeks.
        entry = WindowEntry(now, amount)
        self._entries.append(entry)
        self._total += amount
        return entry

    def correct(self, entry: WindowEntry, amount: float) -> None:
        """Set an entry to the amount that was really used. An entry that has left the window no longer counts."""
        if self._entries and entry.at >= self._entries[0].at:
            self._total += amount - entry.amount
        entry.amount = amount


_LIMIT_MINUTE_S = 61.0
"""A second more than a minute, since Podium counts a call when it is sent and the provider when it arrives."""
_MINUTE_PARTS = 20
"""A minute has this many parts. Each admits at most twice its share of the requests, which prevents bursts."""


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call. `RateLimiter.release` takes it back."""

    requests: tuple[WindowEntry, ...]
    tokens: WindowEntry | None


@dataclass(frozen=True, slots=True)
class _Waiter:
    tokens: int
    turn: asyncio.Future[Permit]
    since: float


class RateLimiter:
    """Limits the concurrent calls, requests a minute and tokens a minute of one worker. It belongs to one event loop.

    Each queue key has a queue, and the queues take turns, so that a question with many calls does not delay others.

    Args:
        model_host: the machine whose memory the worker's model shares with other models. None if it shares none.
        model: the name of the worker's model on that machine.
    """

    def __init__(self, limits: Limits, model_host: ModelHost | None = None, model: str = "") -> None:
        self._model_host = model_host
        self._model = model
        if model_host is not None:
            model_host.add(model, self)
        self._free = limits.concurrency
        self._concurrency = limits.concurrency
        self._requests: tuple[SlidingWindow, ...] = ()
        if limits.rpm is not None:
            burst = max(1.0, 2 * limits.rpm / _MINUTE_PARTS)
            self._requests = (
                SlidingWindow(limits.rpm, _LIMIT_MINUTE_S),
                SlidingWindow(burst, _LIMIT_MINUTE_S / _MINUTE_PARTS),
            )
        self._tokens = None if limits.tpm is None else SlidingWindow(limits.tpm, _LIMIT_MINUTE_S)
        self._paused_until = 0.0
        self._waiting: dict[str, deque[_Waiter]] = {}
        """The calls that wait, by queue key. The first queue has its turn next."""
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        """Calls that have a permit."""
        return self._concurrency - self._free

    @property
    def waiting(self) -> int:
        """Calls that wait for a permit."""
        return sum(not waiter.turn.done() for queue in self._waiting.values() for waiter in queue)

    @property
    def waiting_since(self) -> float | None:
        """When the call came that has waited longest. None if no call waits, or if the limits do not permit that call
        yet."""
        first = self._next_waiter()
        if first is None or self._wait_s(first.tokens, asyncio.get_running_loop().time()) > 0:
            return None
        waits = (
            waiter.since for queue in self._waiting.values() for waiter in queue if not waiter.turn.done()
        )
        return min(waits)

    async def acquire(self, queue_key: str, tokens: int) -> Permit:
        """Wait until one more call of at most `tokens` is within all limits."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        now_free = not self._waiting and self._free and self._wait_s(tokens, now) <= 0
        if now_free and (self._model_host is None or self._model_host.admits(self._model)):
            return self._permit(tokens, now)
        waiter = _Waiter(tokens, loop.create_future(), now)
        self._waiting.setdefault(queue_key, deque()).append(waiter)
        self.grant()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            # The call may get its permit and be cancelled at the same moment.
            if waiter.turn.done() and not waiter.turn.cancelled():
                self.cancel(waiter.turn.result())
            else:
                self._grant_next()  # Other calls may have waited behind this one.
            raise

    def release(self, permit: Permit, tokens: int) -> None:
        """Return the permit of a call that has ended and took `tokens`."""
        self._free += 1
        if self._tokens is not None and permit.tokens is not None:
            self._tokens.correct(permit.tokens, tokens)
        self._grant_next()

    def cancel(self, permit: Permit) -> None:
        """Return the permit of a call that was not made. The call counts towards no limit."""
        for window, entry in zip(self._requests, permit.requests, strict=True):
            window.correct(entry, 0)
        self.release(permit, 0)

    def pause(self, seconds: float) -> None:
        """Permit no call for `seconds`, because the worker requested a pause."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)
        if self._waiting:
            self._grant_next()  # This sets the alarm for the waiting calls, and may give another model its turn.

    def grant(self) -> None:
        """Give permits to the calls that are within the limits, queue by queue."""
        if not self._waiting:
            return
        now = asyncio.get_running_loop().time()
        while self._free and (waiter := self._next_waiter()) is not None:
            wait = self._wait_s(waiter.tokens, now)
            if wait > 0:
                if self._alarm is not None:
                    self._alarm.cancel()
                self._alarm = asyncio.get_running_loop().call_later(wait, self._grant_next)
                return
            if self._model_host is not None and not self._model_host.admits(self._model):
                return
            waiter.turn.set_result(self._permit(waiter.tokens, now))
            self._end_turn()

    def _grant_next(self) -> None:
        """Grant waiting calls of this worker, and of the other models of its machine."""
        self.grant()
        if self._model_host is not None:
            self._model_host.grant_waiting()

    def _next_waiter(self) -> _Waiter | None:
        """The call whose turn it is. None if no call waits."""
        while self._waiting:
            waiter = next(iter(self._waiting.values()))[0]
            if not waiter.turn.done():
                return waiter
            self._end_turn()  # The call was cancelled.
        return None

    def _end_turn(self) -> None:
        """Drop the first call of the first queue, and put that queue behind the other queues."""
        queue_key, queue = next(iter(self._waiting.items()))
        queue.popleft()
        del self._waiting[queue_key]
        if queue:
            self._waiting[queue_key] = queue

    def _permit(self, tokens: int, now: float) -> Permit:
        self._free -= 1
        requests = tuple(window.add(1, now) for window in self._requests)
        return Permit(requests, None if self._tokens is None else self._tokens.add(tokens, now))

    def _wait_s(self, tokens: int, now: float) -> float:
        wait = self._paused_until - now
        for window in self._requests:
            wait = max(wait, window.wait_s(1, now))
        return wait if self._tokens is None else max(wait, self._tokens.wait_s(tokens, now))


class ModelHost:
    """Which models one machine has most likely loaded, and which may take calls. It belongs to one event loop.

    Calls that need a loaded model go first, whichever question makes them. Another model is loaded, for the call that
    waits longest, once a loaded model has no calls left or its turn is over. The machine's server loads the model when
    it gets a call. Nothing here does.

    Args:
        loaded_at_once: how many models its memory holds.
        longest_turn_s: a loaded model gives way after calls have waited this long for another model, even if it still
            has calls.
    """

    def __init__(self, loaded_at_once: int, longest_turn_s: float) -> None:
        self._loaded_at_once = loaded_at_once
        self._longest_turn_s = longest_turn_s
        self._queues: dict[str, WeakSet[RateLimiter]] = {}
        """The queues of each model's workers, while anything else holds them."""
        self._loaded: dict[str, float] = {}
        """When each loaded model was loaded. The earliest comes first."""
        self._swap: asyncio.TimerHandle | None = None

    @property
    def loaded(self) -> frozenset[str]:
        """The models that need not be loaded first."""
        return frozenset(self._loaded)

    def add(self, model: str, queue: RateLimiter) -> None:
        """Add the queue of one more worker of the model."""
        self._queues = {name: some for name, some in self._queues.items() if some or name in self._loaded}
        self._queues.setdefault(model, WeakSet()).add(queue)

    def admits(self, model: str) -> bool:
        """Whether a call of the model may begin now. If not, the model's queues are told later to begin calls."""
        if model in self._loaded:
            if model != self._yielding():
                return True
        elif len(self._loaded) < self._loaded_at_once:
            self._loaded[model] = asyncio.get_running_loop().time()
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
        return model if waited_s > self._longest_turn_s else None

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
            self._loaded[following[1]] = asyncio.get_running_loop().time()
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
