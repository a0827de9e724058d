"""What the calls of all questions share: channels to workers, the response cache, shared budgets.

One `CallState` serves all runners over the same workers. It does not close the cache and spend limits that it was
given. `open_call_state` opens them and closes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from weakref import WeakKeyDictionary

from podium.calls.circuit_breaker import CircuitBreaker
from podium.calls.input_bound import InputTokenBound
from podium.calls.rate_limiter import ModelHost, RateLimiter, model_key
from podium.errors import UsageError, WorkerError
from podium.spending import SpendLimit
from podium.spending.shared_spend_limit import SharedSpendLimit, open_day_limit
from podium.types import MAX_USD, Usage
from podium.workers.base import Worker
from podium.workers.replacements import FailingWorker
from podium.workers.response_cache import ResponseCache

RESPONSES, SPENDING = "responses.sqlite", "spending.sqlite"
"""Names of the response cache and of the spend limit in a run's folder."""
_LOG = logging.getLogger("podium.calls")
_DOWN = ("timeout", "connection", "status")
"""Kinds of retryable errors that mean that a worker is down."""
_LONGEST_PAUSE_S = 60.0
"""The longest pause that calls wait for. A worker that requests a longer pause goes into cooldown."""
_RETRY_WINDOW_S = 60.0
_FREE_RETRIES = 10
"""Retries that a worker may have in any minute, even if it has few calls."""
_LOADED_S = 60.0
"""The longest turn of a loaded model, if calls wait for another that would have to be loaded."""
_COMPUTING_S = 5.0
"""The longest turn of a model that takes all cores, if calls wait for another. Two such models at once took 1.6 to 5.7
times as long for one answer each as one after the other, since llama.cpp's threads wait for each other."""
_THIS_MACHINE: WeakKeyDictionary[asyncio.AbstractEventLoop, ModelHost] = WeakKeyDictionary()
"""By event loop: the turns of the models that take all cores, whichever team they are of."""
_LATENCIES_KEPT = 100
_MIN_LATENCIES = 20
"""How many answers must be measured before a call can count as slow."""


class RetryBudget:
    """Allows as many retries as there were calls in the last minute, and ten more.

    If all calls fail, retrying each of them several times would make matters worse.
    """

    def __init__(self) -> None:
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
        if len(self._retries) >= _FREE_RETRIES + len(self._calls):
            return False
        self._retries.append(now)
        return True


def _forget_old(times: deque[float], now: float) -> None:
    while times and times[0] <= now - _RETRY_WINDOW_S:
        times.popleft()


class WorkerChannel:
    """The channel to one worker, which all its calls on one event loop share."""

    def __init__(self, worker: Worker, model_host: ModelHost | None = None, model: str | None = None) -> None:
        self.worker = worker
        self.rate_limiter = RateLimiter(worker.limits, model_host, model or model_key(worker))
        self.breaker = CircuitBreaker(worker.limits)
        self.retry_budget = RetryBudget()
        self.input_bound = InputTokenBound(worker)
        self.attempts = 0
        self.failures = 0
        """Attempts that failed."""
        self.retries = 0
        self.hedges = 0
        self._seconds: deque[float] = deque(maxlen=_LATENCIES_KEPT)
        """Latencies of the latest answers."""
        self._warned = False
        """Whether implausible token counts of the worker were logged."""

    @property
    def slow_s(self) -> float | None:
        """Seconds after which a call is hedged. None if hedging is off, or too few answers were measured."""
        share = self.worker.limits.hedge_quantile
        if share is None or len(self._seconds) < _MIN_LATENCIES:
            return None
        return sorted(self._seconds)[int(share * len(self._seconds))]

    def record_success(self, began: float, usage: Usage) -> None:
        """Count an attempt that began at `began` on the event loop's clock, was answered and took `usage`."""
        self.attempts += 1
        if usage.implausible is not None and not self._warned:
            self._warned = True  # Once is enough: such a worker most likely does it in every reply.
            _LOG.warning(
                "The worker %r reports %s for a call that cannot have taken that. Podium counts its own estimate, now "
                "and whenever this happens again; the trace says where.",
                self.worker.profile.name,
                usage.implausible,
            )
        self._seconds.append(asyncio.get_running_loop().time() - began)
        self.breaker.record_success()

    def record_failure(self, began: float, error: WorkerError, *, probe: bool) -> None:
        """Count an attempt that began at `began` and failed."""
        self.attempts += 1
        self.failures += 1
        if error.kind == "rate_limited" and error.retry_after_s is not None:
            if error.retry_after_s <= _LONGEST_PAUSE_S:
                self.rate_limiter.pause(error.retry_after_s)
            else:  # No call can wait for so long, so the worker counts as down.
                self.breaker.open_for(error.retry_after_s, error, probe=probe)
                return
        if error.retryable and error.kind in _DOWN:
            self.breaker.record_failure(began, error, probe=probe)
        else:
            self.breaker.release(probe=probe)


class _LoopState:
    """The state for one event loop, which copies of a call state share."""

    def __init__(self) -> None:
        self.channels: dict[str, WorkerChannel] = {}
        self.model_hosts: dict[str, ModelHost] = {}
        """By `Limits.host`."""
        self.first_call_lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def of_running_loop(self) -> Self:
        """This state, emptied first if another event loop runs than at the last call."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # Waiting calls belong to their loop.
            self.channels, self.model_hosts, self.first_call_lock, self._loop = {}, {}, asyncio.Lock(), loop
        return self


@dataclass(frozen=True, kw_only=True)
class CallState:
    """Holds the channels to workers, the response cache, and the spend limits of calls. It makes a channel at the first
    call of a worker."""

    cache: ResponseCache | None = None
    """The answers that were paid for before. If it is None, each call is made."""
    spend_limits: Sequence[SpendLimit] = ()
    """Budgets in dollars that the questions share. Every call is charged to each of them."""
    _loop_state: _LoopState = field(default_factory=_LoopState, repr=False)

    def with_spend_limits(self, *spend_limits: SpendLimit) -> Self:
        """This call state, with the same channels and cache, for questions that are charged to these limits too."""
        return replace(self, spend_limits=(*self.spend_limits, *spend_limits))

    def with_cache(self, cache: ResponseCache | None) -> Self:
        """This call state with the same channels and limits, and with another cache or none."""
        return replace(self, cache=cache)

    @property
    def refusal(self) -> str | None:
        """Why a spend limit has refused a call for good. None if no limit has."""
        return next((limit.refusal for limit in self.spend_limits if limit.refusal is not None), None)

    @property
    def shared_limits(self) -> tuple[SharedSpendLimit, ...]:
        """The spend limits that processes share: of the run and of the day."""
        return tuple(limit for limit in self.spend_limits if isinstance(limit, SharedSpendLimit))

    @property
    def run_spent_usd(self) -> float | None:
        """The dollars of all starts of the run. None if they are not counted, since nothing costs money."""
        return next((limit.spent_usd for limit in self.shared_limits if limit.name == "run"), None)

    @property
    def has_budget(self) -> bool:
        """Whether a spend limit may refuse a call. Limits of `MAX_USD` only count."""
        return any(
            not isinstance(limit, SharedSpendLimit) or limit.limit_usd < MAX_USD
            for limit in self.spend_limits
        )

    def channel(self, worker: Worker) -> WorkerChannel:
        """The channel to `worker` on the running event loop.

        A `FailingWorker` gets a new channel for each call, since its failures must not open the breaker of the worker
        whose name it has.
        """
        if isinstance(worker, FailingWorker):
            return WorkerChannel(worker)
        channels = self._loop_state.of_running_loop().channels
        channel = channels.get(worker.profile.name)
        if channel is None:
            channel = channels[worker.profile.name] = self._open(worker)
        return channel

    def unloaded_models(self, workers: Iterable[Worker]) -> tuple[str, ...]:
        """The names of the workers whose machine would first have to load their models.

        Empty if there is a response cache, whose keys would otherwise change with the loaded models.
        """
        model_hosts = self._loop_state.of_running_loop().model_hosts
        if not model_hosts or self.cache is not None:
            return ()
        return tuple(
            worker.profile.name
            for worker in workers
            if (model_host := model_hosts.get(worker.limits.host or "")) is not None
            and model_key(worker) not in model_host.loaded
        )

    @property
    def first_call_lock(self) -> asyncio.Lock:
        """A lock for the one call that is made although it could cost more than it reserves (`WorkerCall`)."""
        return self._loop_state.of_running_loop().first_call_lock

    @property
    def channels(self) -> tuple[WorkerChannel, ...]:
        """The channel of each worker that was called."""
        return tuple(self._loop_state.channels.values())

    def _open(self, worker: Worker) -> WorkerChannel:
        limits, host = worker.limits, worker.limits.host
        if host is not None:
            model_host = ModelHost(limits.loaded_at_once, _LOADED_S)
            return WorkerChannel(worker, self._loop_state.model_hosts.setdefault(host, model_host))
        if worker.takes_all_cores:
            here = _THIS_MACHINE.setdefault(asyncio.get_running_loop(), ModelHost(1, _COMPUTING_S))
            # Each team has processes of its own, also for a file that another team serves too.
            return WorkerChannel(worker, here, f"{model_key(worker)} {id(self._loop_state)}")
        return WorkerChannel(worker)


@contextmanager
def open_call_state(
    *,
    paid_workers: bool,
    cache: Path | None = None,
    replay: bool = False,
    day_usd: float | None = None,
    run_usd: float | None = None,
    pays: bool = False,
    run: Path | None = None,
    spend_limit_file: Path | None = None,
) -> Iterator[CallState]:
    """Open a call state, and close its files at the end.

    Args:
        paid_workers: whether any worker costs money. Then a run keeps a cache and a spend limit in its folder, so that
            it pays for no answer twice when it is resumed. Otherwise they are opened only if a setting names them.
        cache, replay, day_usd, run_usd: as in `TeamSettings`.
        pays: whether something else costs money, such as plans.
        run: the run's folder. It is made if it is missing.
        spend_limit_file: the file in which processes share the budget of a run, for a run without a folder.

    Raises:
        UsageError: settings that exclude each other, or a file that cannot be used.
    """
    pays = pays or paid_workers
    with ExitStack() as files:
        path = cache or (run / RESPONSES if run is not None and paid_workers else None)
        if replay and path is None:
            raise UsageError("replay answers from a response cache; name its file with cache.")
        responses = None
        if path is not None:
            responses = files.enter_context(ResponseCache(path, replay=replay))
        spend_limits = []
        if run_usd is not None or (run is not None and pays):
            spend_limit_file = spend_limit_file if run is None else run / SPENDING
            limit = MAX_USD if run_usd is None else run_usd
            spend_limits.append(
                files.enter_context(closing(SharedSpendLimit(spend_limit_file, "run", limit)))
            )
        day = open_day_limit(day_usd) if pays else None
        if day is not None:
            spend_limits.append(files.enter_context(closing(day)))
        yield CallState(cache=responses, spend_limits=spend_limits)
