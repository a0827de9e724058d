"""The circuit breaker of a worker: one that is down is left alone, and tried again from time to time.

Closed: calls pass. Open: the worker rests. Half open: one call, the probe, tries whether it is back. What counts as a
failure is `failed`'s caller to say; a worker that refuses, or that asks to be called less often, is not down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from podium.errors import WorkerError
from podium.types import Limits

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Why and since when a worker rests. Times on the event loop's clock."""

    since: float
    probe_at: float
    failures: int
    error: str


class Breaker:
    """Opens when a worker is down. It belongs to one event loop.

    It opens after `limits.failures` in a row; or when a call ran into its time limit and nothing has succeeded since
    that call began; or when all calls have failed for as long as `limits.timeout`. So a worker that is down costs one
    timeout at most, and one that answers other calls meanwhile goes on.

    Args:
        name: the worker's, for messages.
        limits: its.
        tell: called when it opens, when a probe has failed, and with None when it closes.
    """

    def __init__(
        self, name: str, limits: Limits, tell: Callable[[Cooldown | None], None] = lambda rest: None
    ) -> None:
        self._name = name
        self._limits = limits
        self._tell = tell
        self._failures = 0
        self._began = 0.0
        """Since when nothing but failures has been seen."""
        self._succeeded = float("-inf")
        self._rest: Cooldown | None = None
        self._probing = False
        self._changed = asyncio.Event()

    @property
    def state(self) -> State:
        """As the docstring of the module has it."""
        if self._rest is None:
            return "closed"
        return "half-open" if self._probing else "open"

    @property
    def rest(self) -> Cooldown | None:
        """Why it is open; None: it is closed."""
        return self._rest

    def start_open(self, rest: Cooldown) -> None:
        """Begin as another process left it."""
        self._rest, self._failures = rest, rest.failures

    async def admit(self, *, patient: bool) -> bool:
        """Pass at once where it is closed; returns whether this call is the probe.

        Args:
            patient: wait for the next probe, and pass if it succeeds; else only the probe passes.

        Raises:
            WorkerError: the worker rests (kind "open"), which does not pass soon.
        """
        if self._rest is None:
            return False
        clock = asyncio.get_running_loop().time
        give_up = clock() + 2 * self._limits.probe_after
        while self._rest is not None:
            now = clock()
            if not self._probing and now >= self._rest.probe_at:
                self._probing = True
                return True
            if not patient or now >= give_up:
                raise self._refusal(now)
            until = give_up if self._probing else min(give_up, self._rest.probe_at)
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return False

    def succeeded(self) -> None:
        """A call was answered."""
        self._failures = 0
        self._succeeded = asyncio.get_running_loop().time()
        if self._rest is not None:
            self._rest, self._probing = None, False
            self._changed.set()
            self._tell(None)

    def failed(self, began: float, error: WorkerError, *, probe: bool) -> None:
        """A call that was begun at `began` found the worker down."""
        now = asyncio.get_running_loop().time()
        began_alone = max(began, self._succeeded)
        self._began = min(self._began, began_alone) if self._failures else began_alone
        self._failures += 1
        if self._rest is None:
            late = error.kind == "timeout" and self._succeeded < began
            if (
                not late
                and self._failures < self._limits.failures
                and now - self._began < self._limits.timeout
            ):
                return
        elif not probe:
            return
        self._open(self._limits.probe_after, error)

    def open_for(self, seconds: float, error: WorkerError) -> None:
        """The worker wants to be left alone for so long."""
        self._failures += 1
        self._open(seconds, error)

    def _open(self, seconds: float, error: WorkerError) -> None:
        """Rest for so long from now; one that rests already goes on with it."""
        now = asyncio.get_running_loop().time()
        since = now if self._rest is None else self._rest.since
        self._rest = Cooldown(since, now + seconds, self._failures, str(error))
        self.let_go(probe=True)
        self._tell(self._rest)

    def let_go(self, *, probe: bool) -> None:
        """A call ended and says nothing of the worker; another may probe."""
        if probe:
            self._probing = False
            self._changed.set()

    def _refusal(self, now: float) -> WorkerError:
        assert self._rest is not None
        wait = max(0.0, self._rest.probe_at - now)
        when = "is being tried again just now" if self._probing else f"is tried again in {wait:.0f} s"
        failed = (
            "a failed call" if self._rest.failures == 1 else f"{self._rest.failures} failed calls in a row"
        )
        return WorkerError(f"It rests after {failed} and {when}; the latest: {self._rest.error}", kind="open")
