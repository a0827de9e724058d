"""The limits of one worker: concurrent calls, requests a minute, tokens a minute, turns of its model, and retries.

Calls that wait take turns by their queue key. The limits apply within one process: if two processes use the same API
key, give each of them half of the limits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from podium.calls.model_host import ModelHost
from podium.types import Limits


@dataclass(slots=True)
class WindowEntry:
    """The requests or tokens of one call in a window."""

    at: float
    amount: float


class SlidingWindow:
    """A sliding window: in no stretch of `seconds` does it admit more than `limit`.

    An amount larger than the limit is admitted when the window is empty, because a call cannot be split.

    Args:
        limit: the largest sum of the amounts in the window.
        seconds: the length of the window.
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
        self._grant_next = self.grant if model_host is None else self._grant_on_model_host
        if model_host is not None:
            model_host.add(model, self)
        self._free = limits.concurrency
        self._concurrency = limits.concurrency
        self._requests = () if limits.rpm is None else _windows(limits.rpm)
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
                self._schedule_grant(wait)
                return
            if self._model_host is not None and not self._model_host.admits(self._model):
                return
            waiter.turn.set_result(self._permit(waiter.tokens, now))
            self._end_turn()

    def _grant_on_model_host(self) -> None:
        """Grant waiting calls of this worker and of the machine's other models."""
        assert self._model_host is not None
        self.grant()
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
        """The permit for a call that is within all limits."""
        self._free -= 1
        requests = tuple(window.add(1, now) for window in self._requests)
        return Permit(requests, None if self._tokens is None else self._tokens.add(tokens, now))

    def _wait_s(self, tokens: int, now: float) -> float:
        wait = self._paused_until - now
        for window in self._requests:
            wait = max(wait, window.wait_s(1, now))
        return wait if self._tokens is None else max(wait, self._tokens.wait_s(tokens, now))

    def _schedule_grant(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._grant_next)


def _windows(per_minute: float) -> tuple[SlidingWindow, SlidingWindow]:
    return SlidingWindow(per_minute, _LIMIT_MINUTE_S), SlidingWindow(
        max(1.0, 2 * per_minute / _MINUTE_PARTS), _LIMIT_MINUTE_S / _MINUTE_PARTS
    )


_RETRY_WINDOW_S = 60.0
_FREE_RETRIES = 10
"""Retries that a worker may have in any minute, even if it has few calls."""


class RetryBudget:
    """Allows `share` retries for each call of the last minute, and ten more.

    If all calls fail, retrying each of them would make matters worse.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._calls: deque[float] = deque()
        self._retries: deque[float] = deque()

    def count_call(self, now: float) -> None:
        """Count a call, without its retries."""
        _forget_old(self._calls, now)
        self._calls.append(now)

    def try_retry(self, now: float) -> bool:
        """Count one more retry and return True. If no retry may be made, return False."""
        for times in (self._calls, self._retries):
            _forget_old(times, now)
        if len(self._retries) >= _FREE_RETRIES + self._share * len(self._calls):
            return False
        self._retries.append(now)
        return True


def _forget_old(times: deque[float], now: float) -> None:
    while times and times[0] <= now - _RETRY_WINDOW_S:
        times.popleft()
