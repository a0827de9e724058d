"""Makes one call of one worker, with retries and a hedge. Each try reserves its highest cost and settles its true cost.

Any exception of a worker besides `WorkerError` is a bug and escapes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podium.calls.call_state import CallState
from podium.calls.input_bound import InputTokenBound
from podium.calls.rate_limiter import Permit
from podium.errors import BudgetExceededError, WorkerError
from podium.spending import Ledger, Reservation
from podium.trace import Attempt, Reply
from podium.types import DEFAULT_OPTIONS, AnswerOptions, Budget, Message, Receipt, Spent, Usage, fast_replace
from podium.workers.base import Request, Worker, time_limit

_LONGEST_WAIT_S = 60.0
"""The longest wait before a retry. If the worker asks for a longer one, there is no retry."""
_MOST_DOUBLINGS = 30
"""Further doublings would overflow, and the longest wait is reached before."""
_GRACE_S = 0.1
"""Seconds added to the time limit, so that a worker with a timeout of its own can say what it was waiting for."""


class Listeners(NamedTuple):
    """The listeners to one try."""

    on_text: Callable[[str], None]
    on_reasoning: Callable[[str], None]
    """The listener to visible reasoning."""


MakeListeners = Callable[[], Listeners]
"""Makes the listeners to one try. Two tries may write at the same time."""


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How long retries wait, in seconds."""

    first_wait_s: float = 0.5
    """The wait before the first retry. It doubles with each retry. A random wait of up to the same length is added."""

    def wait_s(self, retry: int, requested_s: float | None) -> float:
        """The seconds before a retry, after `retry` retries. `requested_s` is what the worker asks for at least."""
        doubled = 2.0 ** min(retry, _MOST_DOUBLINGS)
        own_s = min(_LONGEST_WAIT_S, self.first_wait_s * (doubled + random.random()))
        return max(own_s, requested_s or 0.0)


@dataclass(frozen=True, kw_only=True)
class CallContext:
    """The question for which a worker is called: its budget, its call state and its place in queues."""

    ledger: Ledger
    call_state: CallState
    settings: RetrySettings = field(default_factory=RetrySettings)
    queue_key: str
    """Calls that wait for a worker take turns by this key, so that a question with many calls does not delay others."""
    started: float
    """When the question's trace began, on the event loop's clock."""

    @staticmethod
    def unlimited() -> CallContext:
        """The context of a call that no question makes, without limits."""
        return CallContext(ledger=Ledger(Budget()), call_state=CallState(), queue_key="", started=0.0)

    def elapsed(self) -> float:
        """Seconds since the trace began."""
        return asyncio.get_running_loop().time() - self.started


class AttemptLog(list[Attempt]):
    """The tries of a call and of its fallbacks, in the order in which they ended, also cancelled ones. A try has its
    spending here only if its answer does not count. Otherwise the answer has the spending."""

    def mark_truncated(self, worker: str, spent: Spent) -> None:
        """Count the answer of a worker as a failure, since the worker's own max_tokens cut the answer off. `spent` is
        what the try took, or nothing if the answer counts all the same."""
        self._mark_last(
            lambda attempt: attempt.worker == worker and attempt.error_kind in (None, "length"),
            kind="length",
            error="The answer was cut off at max_tokens.",
            spent=spent,
        )

    def mark_lost(self, spent: Spent, *, hedge: bool, cancelled: bool) -> None:
        """Count the answer of a try, which is a hedge or not, as cancelled, although it was paid for: the call was
        cancelled, or the other try was answered at the same moment."""
        self._mark_last(
            lambda attempt: attempt.hedge == hedge and attempt.error_kind is None,
            kind="cancelled",
            error="Cancelled as it was answered." if cancelled else "The other try was answered first.",
            spent=spent,
        )

    def _mark_last(self, is_meant: Callable[[Attempt], bool], *, kind: str, error: str, spent: Spent) -> None:
        for index, attempt in reversed(list(enumerate(self))):
            if is_meant(attempt):
                update = {"error_kind": kind, "error": error, "spent": spent}
                self[index] = attempt.model_copy(update=update)
                return


def first_reservation(
    worker: Worker, messages: tuple[Message, ...], options: AnswerOptions = DEFAULT_OPTIONS
) -> Reservation:
    """The most that a call may take, for a worker that has not reported a token count yet."""
    bound = InputTokenBound(worker)
    input_tokens = bound.upper(bound.size(messages, options))
    limits, price = worker.limits, worker.profile.price
    return Reservation.most(limits, price, input_tokens=input_tokens, output_tokens=options.max_tokens)


class WorkerCall:
    """One call of one worker with its retries. The response cache of the context's call state may answer it instead.

    Args:
        log: each try is added to it when the try ends or is cancelled.
        counts_as_call: whether the budget counts the call. A fallback's call was counted with the first worker's.
        waits_for_cooldown: whether to wait for a worker that is in cooldown.
        make_listeners: called for each try. None if nobody listens.
    """

    def __init__(
        self,
        context: CallContext,
        worker: Worker,
        request: Request,
        log: AttemptLog,
        *,
        counts_as_call: bool,
        waits_for_cooldown: bool,
        make_listeners: MakeListeners | None = None,
    ) -> None:
        self._context = context
        self._worker = worker
        self._request = request
        self._log = log
        self._calls_to_reserve = int(counts_as_call)
        self._channel = context.call_state.channel(worker)
        self._size = self._channel.input_bound.size(request.messages, request.options)
        self._likely_tokens = self._size.estimated_tokens + worker.limits.answer_tokens(
            request.options.max_tokens
        )
        self._waits_for_cooldown = waits_for_cooldown
        self._pays_for_own_calls = worker.traits.pays_for_own_calls
        self._hands_on_limits = self._pays_for_own_calls and worker.limits.max_usd is None
        self._make_listeners = make_listeners

    def run(self) -> Awaitable[Reply]:
        """The reply from the response cache if it is there. Otherwise call the worker, and retry retryable failures.

        Raises:
            WorkerError: the worker failed for good, or a limit refuses to try it again; or see `get_or_call`.
            BudgetExceededError: a limit refuses the first try.
            StoreError: the response cache cannot be read or written.
        """
        cache = self._context.call_state.cache
        if cache is None:
            return self._run()
        return cache.get_or_call(self._worker, self._request, self._run)

    async def _run(self) -> Reply:
        channel, clock = self._channel, asyncio.get_running_loop().time
        channel.retry_budget.count_call(clock())
        for retry in range(self._worker.limits.retries + 1):
            slow_s = channel.slow_s
            try:
                return await (self._try() if slow_s is None else self._try_with_hedge(slow_s))
            except WorkerError as error:
                failure = error
            except BudgetExceededError as refusal:
                if not retry:
                    raise
                raise WorkerError(f"{failure} It is not tried again: {refusal}", kind=failure.kind) from None
            if retry == self._worker.limits.retries or not self._may_be_retried(failure):
                break
            await asyncio.sleep(self._context.settings.wait_s(retry, failure.retry_after_s))
            if not channel.retry_budget.try_retry(clock()):
                raise WorkerError(
                    f"{failure} It is not tried again: too many calls to this worker failed lately.",
                    kind=failure.kind,
                )
            channel.retries += 1
        raise failure

    def _may_be_retried(self, error: WorkerError) -> bool:
        # In a cooldown, the fallback need not wait.
        in_cooldown = self._channel.breaker.state == "open" and not self._waits_for_cooldown
        return error.retryable and not in_cooldown and (error.retry_after_s or 0.0) <= _LONGEST_WAIT_S

    async def _try_with_hedge(self, slow_s: float) -> Reply:
        """Make one try, and a second try at the same time once the first is slow. The first answer counts."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        first = asyncio.create_task(self._try(begun=begun))
        tries, winner = [first], None
        try:
            either: set[asyncio.Future[Any]] = {first, begun}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait(tries, timeout=slow_s)
            if not done:
                tries.append(asyncio.create_task(self._hedge(first)))
            winner = await _first_answered(tries)
            return winner.result()
        finally:
            for task in tries:
                task.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
            replies = [] if winner is None else [winner.result()]
            for task in tries:  # A hedge that the budget refused has the reply of the first try.
                if not _is_answered(task) or any(task.result() is reply for reply in replies):
                    continue
                replies.append(task.result())
                spent = task.result().spent(self._worker.profile)
                self._log.mark_lost(spent, hedge=task is not first, cancelled=winner is None)

    async def _hedge(self, first: asyncio.Task[Reply]) -> Reply:
        """Make a second try if the budgets allow it. Otherwise return the result of the first."""
        try:
            return await self._try(hedge=True)
        except BudgetExceededError:
            return await asyncio.shield(first)

    async def _try(self, *, hedge: bool = False, begun: asyncio.Future[None] | None = None) -> Reply:
        """Make one try within the worker's time limit, once budgets, breaker and rate limiter allow it, which sets
        `begun`. A hedge is a try while another is in flight."""
        worker, channel, context = self._worker, self._channel, self._context
        reservation, lock = (self._reserve_hedge(), None) if hedge else await self._reserve()
        self._calls_to_reserve, receipt = 0, Receipt()
        try:
            permit, probe = await self._wait_for_permit()
            try:
                if begun is not None:
                    begun.set_result(None)
                request = self._request_with(receipt)
                began, started = asyncio.get_running_loop().time(), context.elapsed()
                try:
                    if worker.traits.keeps_time_limit:
                        reply = await worker.answer(request)
                    else:
                        async with time_limit(worker.limits.timeout, _GRACE_S):
                            reply = await worker.answer(request)
                except WorkerError as error:
                    self._record(started, hedge, error.kind, str(error), receipt.spent)
                    if receipt.spent != Spent():
                        self._learn(receipt.spent.usage)
                    channel.record_failure(began, error, probe=probe)
                    raise
                except BaseException as error:
                    channel.breaker.release(probe=probe)
                    if isinstance(error, asyncio.CancelledError):
                        self._record(started, hedge, "cancelled", "Cancelled while in flight.", receipt.spent)
                    raise
                receipt.spent = reply.spent(worker.profile)
                self._record(started, hedge)
                self._learn(reply.usage)
                channel.record_success(began, reply.usage)
                return reply
            finally:
                channel.rate_limiter.release(
                    permit, receipt.spent.usage.tokens or self._size.estimated_tokens
                )
        finally:
            context.ledger.settle(reservation, receipt.spent, usd=not self._hands_on_limits)
            if lock is not None:
                lock.release()

    async def _reserve(self) -> tuple[Reservation, asyncio.Lock | None]:
        """Reserve the most that a try may take.

        Until the worker has reported a token count, the bound is so high that a budget may refuse a call that it could
        pay for. Then one call at a time is made with a smaller reservation, and other calls wait until its usage shows
        how the worker counts. The lock of that one call must be released when the call ends.
        """
        bound = self._channel.input_bound
        if not bound.is_calibrated:
            reservation = self._reservation(bound.first_call_bound(self._size))
            with suppress(BudgetExceededError):
                await self._context.ledger.reserve(reservation, final=False)
                return reservation, None
            lock = self._context.call_state.first_call_lock
            await lock.acquire()
            try:
                if not bound.is_calibrated:
                    return await self._reserve_tokens(bound.lower(self._size)), lock
            except BaseException:
                lock.release()
                raise
            lock.release()
        return await self._reserve_tokens(bound.upper(self._size)), None

    async def _reserve_tokens(self, input_tokens: int) -> Reservation:
        """Reserve the most that a try of so many input tokens may take."""
        reservation = self._reservation(input_tokens)
        await self._context.ledger.reserve(reservation)
        return reservation

    def _reserve_hedge(self) -> Reservation:
        """Reserve the most that a hedge may take, without waiting."""
        reservation = self._reservation(self._channel.input_bound.upper(self._size))
        self._context.ledger.try_reserve(reservation, asyncio.get_running_loop().time())
        self._channel.hedges += 1
        return reservation

    def _request_with(self, receipt: Receipt) -> Request:
        """The request as this try sends it. However the try ends, the receipt will have what it took."""
        spend_limits = self._context.ledger.spend_limits if self._hands_on_limits else ()
        request = fast_replace(self._request, receipt=receipt, spend_limits=spend_limits)
        if self._make_listeners is None:
            return request
        return fast_replace(request, **self._make_listeners()._asdict())

    def _reservation(self, input_tokens: int) -> Reservation:
        return Reservation.most(
            self._worker.limits,
            self._worker.profile.price,
            input_tokens=input_tokens,
            output_tokens=self._request.options.max_tokens,
            calls=self._calls_to_reserve,
        )

    async def _wait_for_permit(self) -> tuple[Permit, bool]:
        channel = self._channel
        while True:
            probe = await channel.breaker.acquire(wait=self._waits_for_cooldown)
            try:
                permit = await channel.rate_limiter.acquire(self._context.queue_key, self._likely_tokens)
            except asyncio.CancelledError:
                channel.breaker.release(probe=probe)
                raise
            if probe or channel.breaker.state == "closed":
                return permit, probe
            # The breaker opened while this call waited for the rate limiter.
            channel.rate_limiter.cancel(permit)

    def _learn(self, usage: Usage) -> None:
        if not usage.estimated and not self._pays_for_own_calls:  # A team's count is that of many calls.
            self._channel.input_bound.learn(self._size, usage.input_tokens)

    def _record(
        self,
        started: float,
        hedge: bool,
        kind: str | None = None,
        message: str | None = None,
        spent: Spent = Spent(),
    ) -> None:
        """Record an attempt that ends now. `spent` is what an attempt without a reply took."""
        self._log.append(
            Attempt(
                worker=self._worker.profile.name,
                started_s=started,
                ended_s=self._context.elapsed(),
                error_kind=kind,
                error=message,
                spent=spent,
                hedge=hedge,
            )
        )


async def _first_answered(tries: Collection[asyncio.Task[Reply]]) -> asyncio.Task[Reply]:
    """The first try that is answered. If no try is, the error of the first failed try is raised."""
    failure: WorkerError | None = None
    pending = set(tries)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = task.exception()
            if error is None:
                return task
            if not isinstance(error, WorkerError):
                raise error
            failure = failure or error
    assert failure is not None
    raise failure


def _is_answered(ended: asyncio.Task[Reply]) -> bool:
    return not ended.cancelled() and ended.exception() is None
