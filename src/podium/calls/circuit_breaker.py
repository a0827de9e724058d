"""The circuit breaker of a worker: while the worker is down, no call is sent, except a probe from time to time.

A probe is a single call that tests whether the worker answers again. The breaker is closed while calls are sent, open
while the worker is in cooldown, and half open while a probe is in flight. The caller of `record_failure` decides what
counts as a failure. A worker that rejects a call, or reports a rate limit, is not down.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from podium.errors import WorkerError
from podium.types import Limits

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Why a worker is in cooldown, and until when."""

    probe_at: float
    """When one call may test whether the worker answers again, on the event loop's clock."""
    failures: int
    """How many calls have failed in a row."""
    error: str
    """One sentence, free of secrets: the latest failure."""


class CircuitBreaker:
    """Opens when a worker is down. It belongs to one event loop.

    It opens in three cases: `limits.failures_to_open` calls have failed in a row; a call timed out, and no call has
    succeeded since that call began; all calls have failed for as long as `limits.timeout`. So a worker that is down
    costs one timeout at most. The breaker stays closed if the worker answers other calls meanwhile.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures = 0
        self._failing_since = 0.0
        """The time since which all calls have failed."""
        self._succeeded_at = float("-inf")
        self.cooldown: Cooldown | None = None
        """Why the breaker is open. None while it is closed."""
        self._probing = False
        self._changed = asyncio.Event()

    @property
    def state(self) -> State:
        """The present state. The module's docstring explains the states."""
        if self.cooldown is None:
            return "closed"
        return "half-open" if self._probing else "open"

    async def acquire(self, *, wait: bool) -> bool:
        """Return when the call may be sent, which is at once while the breaker is closed. Returns whether this call is
        the probe.

        Args:
            wait: whether the call waits for the result of the next probe, unless that probe is later than the longest
                wait allows. If not, it is sent only as the probe.

        Raises:
            WorkerError: the worker is in cooldown (kind "circuit_open"), and `wait` is False or the wait is or was too
                long.
        """
        if self.cooldown is None:
            return False
        clock = asyncio.get_running_loop().time
        give_up = clock() + 2 * self._limits.probe_after
        while self.cooldown is not None:
            now = clock()
            if not self._probing and now >= self.cooldown.probe_at:
                self._probing = True
                return True
            if not wait or now >= give_up or (not self._probing and self.cooldown.probe_at > give_up):
                wait_s = max(0.0, self.cooldown.probe_at - now)
                when = (
                    "is being tried again just now" if self._probing else f"is tried again in {wait_s:.0f} s"
                )
                failures = self.cooldown.failures
                failed = "a failed call" if failures == 1 else f"{failures} failed calls in a row"
                raise WorkerError(
                    f"It is in cooldown after {failed} and {when}; the latest: {self.cooldown.error}",
                    kind="circuit_open",
                )
            until = give_up if self._probing else self.cooldown.probe_at
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return False

    def record_success(self) -> None:
        """Close the breaker, since a call was answered."""
        self._failures = 0
        self._succeeded_at = asyncio.get_running_loop().time()
        if self.cooldown is not None:
            self.cooldown, self._probing = None, False
            self._changed.set()

    def record_failure(self, began: float, error: WorkerError, *, probe: bool) -> None:
        """Count a call that began at `began` and found the worker down. `probe` is what `acquire` returned for the
        call."""
        now = asyncio.get_running_loop().time()
        failing_since = max(began, self._succeeded_at)
        self._failing_since = min(self._failing_since, failing_since) if self._failures else failing_since
        self._failures += 1
        if self.cooldown is None:
            timed_out = error.kind == "timeout" and self._succeeded_at < began
            if (
                not timed_out
                and self._failures < self._limits.failures_to_open
                and now - self._failing_since < self._limits.timeout
            ):
                return
        elif not probe:
            return
        self._open(self._limits.probe_after, error, probe=probe)

    def open_for(self, seconds: float, error: WorkerError, *, probe: bool) -> None:
        """Begin a cooldown of this many seconds, which the worker requested. A probe in flight continues."""
        self._failures += 1
        self._open(seconds, error, probe=probe)

    def release(self, *, probe: bool) -> None:
        """Count a call whose end says nothing about the worker. If it was the probe, another call may be the probe."""
        if probe:
            self._probing = False
            self._changed.set()

    def _open(self, seconds: float, error: WorkerError, *, probe: bool) -> None:
        """Begin a cooldown of this many seconds from now, or extend the present cooldown. It never becomes shorter."""
        probe_at = asyncio.get_running_loop().time() + seconds
        if self.cooldown is not None:
            probe_at = max(probe_at, self.cooldown.probe_at)
        self.cooldown = Cooldown(probe_at, self._failures, str(error))
        self.release(probe=probe)
