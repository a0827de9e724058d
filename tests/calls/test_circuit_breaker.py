import asyncio

import pytest

from podium.calls.call_state import WorkerChannel
from podium.calls.circuit_breaker import CircuitBreaker
from podium.errors import WorkerError
from podium.types import Limits
from podium.workers.scripted import ScriptedWorker

LIMITS = Limits(failures_to_open=3, timeout=30.0, probe_after=0.1)
BROKEN = WorkerError("status 500: no.", kind="status", retryable=True)
LATE = WorkerError("no reply within 30 s.", kind="timeout", retryable=True)


def now() -> float:
    return asyncio.get_running_loop().time()


def opened() -> CircuitBreaker:
    breaker = CircuitBreaker(LIMITS)
    breaker.record_failure(now(), LATE, probe=False)
    assert breaker.state == "open"
    return breaker


async def test_breaker_opens_after_the_set_number_of_consecutive_failures():
    breaker = CircuitBreaker(LIMITS)
    for _ in range(2):
        breaker.record_failure(now(), BROKEN, probe=False)
    breaker.record_success()
    for _ in range(2):
        breaker.record_failure(now(), BROKEN, probe=False)
        assert breaker.state == "closed"
    breaker.record_failure(now(), BROKEN, probe=False)
    assert breaker.state == "open"


async def test_one_timeout_opens_breaker_without_success_since_the_call_began():
    breaker, began = CircuitBreaker(LIMITS), now()
    await asyncio.sleep(0.001)
    breaker.record_success()
    breaker.record_failure(began, LATE, probe=False)
    assert breaker.state == "closed"
    breaker.record_failure(now(), LATE, probe=False)
    assert breaker.state == "open"


async def test_failed_long_call_does_not_open_breaker_when_others_succeeded():
    breaker = CircuitBreaker(LIMITS)
    breaker.record_success()
    for error in (LATE, BROKEN):
        breaker.record_failure(now() - 31.0, error, probe=False)
    assert breaker.state == "closed"


async def test_failure_lasting_a_full_timeout_opens_the_breaker():
    breaker = CircuitBreaker(LIMITS)
    breaker.record_failure(now() - 31.0, BROKEN, probe=False)
    assert breaker.state == "open"


async def test_while_open_a_call_with_somewhere_else_to_go_is_refused_at_once():
    breaker = opened()
    with pytest.raises(WorkerError) as refused:
        await breaker.acquire(wait=False)
    assert refused.value.kind == "circuit_open"
    assert not refused.value.retryable
    assert str(refused.value) == (
        "It is in cooldown after a failed call and is tried again in 0 s; the latest: no reply within 30 s."
    )


async def test_a_call_is_refused_at_once_if_the_next_probe_is_too_late_for_it():
    breaker = CircuitBreaker(Limits(probe_after=30.0))
    breaker.open_for(3600.0, BROKEN, probe=False)
    async with asyncio.timeout(5.0):
        with pytest.raises(WorkerError, match="tried again in 3600 s") as refused:
            await breaker.acquire(wait=True)
    assert refused.value.kind == "circuit_open"


async def test_a_call_waits_for_a_probe_in_flight_however_long_the_cooldown():
    breaker = opened()
    assert await breaker.acquire(wait=True)
    call = asyncio.create_task(breaker.acquire(wait=True))
    breaker.open_for(3600.0, BROKEN, probe=False)
    await asyncio.sleep(0.01)
    assert not call.done()
    breaker.record_success()
    assert not await call


async def test_later_failure_extends_a_cooldown_but_never_shortens_it():
    breaker = CircuitBreaker(LIMITS)
    ends = []
    for seconds in (3600.0, 70.0, 7200.0):
        breaker.open_for(seconds, BROKEN, probe=False)
        assert breaker.cooldown is not None
        ends.append(breaker.cooldown.probe_at)
    assert ends[0] == ends[1] > now() + 3000 < ends[2] - 3000


async def test_successful_probe_releases_all_waiting_calls():
    breaker = opened()
    assert breaker.cooldown is not None
    assert breaker.cooldown.error == "no reply within 30 s."
    calls = [asyncio.create_task(breaker.acquire(wait=True)) for _ in range(4)]
    done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [True]
    assert (len(waiting), breaker.state) == (3, "half-open")
    breaker.record_success()
    assert sorted([await task for task in calls]) == [False, False, False, True]
    assert breaker.state == "closed"
    assert breaker.cooldown is None


async def test_a_probe_that_fails_begins_another_cooldown_and_patience_ends():
    breaker = opened()
    began = now()

    async def call() -> str:
        if not await breaker.acquire(wait=True):
            return "passed"
        breaker.record_failure(now(), LATE, probe=True)
        return "probed"

    results = await asyncio.gather(*(call() for _ in range(4)), return_exceptions=True)
    assert [r for r in results if isinstance(r, str)] in (["probed"], ["probed"] * 2)
    assert all(
        isinstance(r, str) or (isinstance(r, WorkerError) and r.kind == "circuit_open") for r in results
    )
    assert now() - began < 5.0
    assert breaker.state == "open"


async def test_a_probe_that_is_cancelled_leaves_the_trial_to_another():
    breaker = opened()
    assert await breaker.acquire(wait=True)
    breaker.release(probe=True)
    assert await breaker.acquire(wait=True)


async def test_failures_of_calls_begun_before_opening_do_not_extend_cooldown():
    breaker = opened()
    rest = breaker.cooldown
    breaker.record_failure(now() - 1, LATE, probe=False)
    assert breaker.cooldown == rest


async def test_rate_limit_reply_does_not_end_the_running_probe():
    limited = WorkerError("Too many requests.", kind="rate_limited", retryable=True, retry_after_s=100.0)
    breaker = opened()
    assert await breaker.acquire(wait=True), "this call is the probe"
    channel = WorkerChannel(ScriptedWorker("w", []))
    channel.breaker = breaker
    channel.record_failure(now(), limited, probe=False)
    assert breaker.state == "half-open"
    breaker.record_success()
    assert breaker.state == "closed"
