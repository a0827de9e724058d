"""What the calls of all questions share: a channel to each worker, the response cache, and accounts of money.

One dispatcher serves all orchestrators over the same workers. It closes nothing that it was given.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.errors import WorkerError
from podium.executor.breaker import Breaker, Cooldown, State
from podium.executor.rate_limiter import RateLimiter, RetryBudget
from podium.workers.base import Worker

if TYPE_CHECKING:
    from podium.executor.ledger import SpendLimit
    from podium.executor.state_file import CooldownFile
    from podium.workers.response_cache import ResponseCache

_DOWN = ("timeout", "connection", "status")
"""Kinds of failures that may pass and say that a worker is down."""
_PATIENCE_S = 60.0
"""A worker that wants to be left alone for longer rests like one that is down."""
_LATEST = 100
_ENOUGH = 20
"""Answers, before it is said what is slow."""


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """How it stands with one worker."""

    worker: str
    state: State
    """Of its breaker."""
    error: str | None
    """Why it rests, if it does."""
    in_flight: int
    waiting: int
    attempts: int
    failures: int
    """Attempts that failed."""
    retries: int
    hedges: int


class WorkerChannel:
    """What all calls of one worker share on one event loop.

    Args:
        worker: whom it leads to.
        tell: as `Breaker`'s.
    """

    def __init__(self, worker: Worker, tell: Callable[[Cooldown | None], None] = lambda rest: None) -> None:
        self.worker = worker
        self.gate = RateLimiter(worker.limits)
        self.breaker = Breaker(worker.profile.name, worker.limits, tell)
        self.retry_budget = RetryBudget(worker.limits.retry_share)
        self.attempts = 0
        self.failures = 0
        self.retries = 0
        self.hedges = 0
        self._seconds: deque[float] = deque(maxlen=_LATEST)
        """Of the latest calls that were answered."""

    @property
    def slow_s(self) -> float | None:
        """Seconds after which a call is among the slow ones that are hedged; None: it is not known, or not wanted."""
        share = self.worker.limits.hedge
        if share is None or len(self._seconds) < _ENOUGH:
            return None
        return sorted(self._seconds)[int(share * len(self._seconds))]

    @property
    def status(self) -> ChannelStatus:
        """How it stands."""
        rest = self.breaker.rest
        return ChannelStatus(
            worker=self.worker.profile.name,
            state=self.breaker.state,
            error=None if rest is None else rest.error,
            in_flight=self.gate.in_flight,
            waiting=self.gate.waiting,
            attempts=self.attempts,
            failures=self.failures,
            retries=self.retries,
            hedges=self.hedges,
        )

    def answered(self, began: float) -> None:
        """An attempt that was begun at `began`, on the event loop's clock, was answered."""
        self.attempts += 1
        self._seconds.append(asyncio.get_running_loop().time() - began)
        self.breaker.succeeded()

    def failed(self, began: float, error: WorkerError, *, probe: bool) -> None:
        """It failed."""
        self.attempts += 1
        self.failures += 1
        if error.kind == "limited" and error.retry_after_s is not None:
            if error.retry_after_s <= _PATIENCE_S:
                self.gate.rest(error.retry_after_s)
            else:  # Nobody can stand before the gate for so long: it is as good as down.
                self.breaker.open_for(error.retry_after_s, error)
                return
        if error.retryable and error.kind in _DOWN:
            self.breaker.failed(began, error, probe=probe)
        else:
            self.breaker.let_go(probe=probe)


class Dispatcher:
    """Lines by worker's name, made when first needed.

    Args:
        cache: answers that were paid for already; None: each call is made.
        accounts: dollars that all questions share.
        resting: where other processes are told which workers rest; None: nowhere.
    """

    def __init__(
        self,
        *,
        cache: ResponseCache | None = None,
        accounts: Sequence[SpendLimit] = (),
        resting: CooldownFile | None = None,
    ) -> None:
        self.cache = cache
        self.accounts = tuple(accounts)
        self._resting = resting
        self._lines: dict[str, WorkerChannel] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def line(self, worker: Worker) -> WorkerChannel:
        """The line to `worker` on the running event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # Waiters belong to their loop; a new `asyncio.run` starts afresh.
            self._lines, self._loop = {}, loop
        line = self._lines.get(worker.profile.name)
        if line is None:
            line = self._lines[worker.profile.name] = self._open(worker)
        return line

    @property
    def status(self) -> tuple[ChannelStatus, ...]:
        """How it stands with each worker that was called."""
        return tuple(line.status for line in self._lines.values())

    def _open(self, worker: Worker) -> WorkerChannel:
        resting = self._resting
        if resting is None or worker.identity is None:
            return WorkerChannel(worker)
        ahead = asyncio.get_running_loop().time() - time.time()

        def tell(rest: Cooldown | None) -> None:
            if rest is None:
                resting.clear(worker)
            else:
                resting.note(
                    worker,
                    since=rest.since - ahead,
                    probe_at=rest.probe_at - ahead,
                    failures=rest.failures,
                    error=rest.error,
                )

        line = WorkerChannel(worker, tell)
        known = resting.get(worker)
        if known is not None:
            line.breaker.start_open(
                Cooldown(known.since + ahead, known.probe_at + ahead, known.failures, known.error)
            )
        return line
