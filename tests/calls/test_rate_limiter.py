import asyncio
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.calls.rate_limiter import RateLimiter, SlidingWindow
from podium.types import Limits


async def admissions(rate_limiter: RateLimiter, tokens: int, used: int | None = None) -> int:
    """How many calls are let through in some quarter of a second, one after the other."""
    admitted = 0
    try:
        async with asyncio.timeout(0.25):
            while True:
                permit = await rate_limiter.acquire("caller", tokens)
                rate_limiter.release(permit, tokens if used is None else used)
                admitted += 1
                await asyncio.sleep(0)
    except TimeoutError:
        return admitted


@pytest.mark.parametrize(
    ("limits", "tokens", "used", "admitted"),
    [
        pytest.param(Limits(rpm=600), 1, None, 60, id="a burst of a tenth of a minute"),
        pytest.param(Limits(rpm=1), 1, None, 1, id="one request a minute"),
        pytest.param(Limits(tpm=1_000), 500, 10, 51, id="unneeded tokens are given back"),
        pytest.param(Limits(tpm=1_000), 10, 400, 3, id="more than expected counts in full"),
    ],
)
async def test_burst_is_limited_by_requests_and_tokens_of_a_minute(
    limits: Limits, tokens: int, used: int | None, admitted: int
) -> None:
    assert await admissions(RateLimiter(limits), tokens, used) == admitted


async def test_a_request_counts_for_a_second_longer_than_a_minute(monkeypatch):
    loop, now = asyncio.get_running_loop(), [1_000.0]
    monkeypatch.setattr(loop, "time", lambda: now[0])
    rate_limiter = RateLimiter(Limits(rpm=1))
    rate_limiter.release(await rate_limiter.acquire("a", 1), 1)
    waiting = asyncio.create_task(rate_limiter.acquire("b", 1))
    for elapsed, admitted in [(59.9, False), (60.5, False), (61.1, True)]:
        now[0] = 1_000.0 + elapsed
        for _ in range(3):
            await asyncio.sleep(0)
        assert waiting.done() is admitted, elapsed
    rate_limiter.release(await waiting, 1)


async def test_a_minute_has_no_more_tokens_than_its_limit():
    assert await admissions(RateLimiter(Limits(tpm=1_000)), tokens=20) == 50


async def test_a_call_larger_than_the_limit_still_passes():
    permit = await asyncio.wait_for(RateLimiter(Limits(tpm=1_000)).acquire("caller", 50_000), timeout=5)
    assert permit.tokens is not None


async def test_a_question_with_one_call_does_not_wait_behind_anothers_many():
    rate_limiter, order = RateLimiter(Limits(concurrency=1)), []

    async def one(caller: str) -> None:
        permit = await rate_limiter.acquire(caller, 1)
        order.append(caller)
        await asyncio.sleep(0)
        rate_limiter.release(permit, 1)

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(one("many"))
        await asyncio.sleep(0)
        group.create_task(one("few"))
        group.create_task(one("fewer"))
    assert order.index("few") <= 3
    assert order.index("fewer") <= 4
    assert Counter(order) == {"many": 20, "few": 1, "fewer": 1}


async def test_places_are_given_back_by_cancelled_calls():
    rate_limiter = RateLimiter(Limits(concurrency=1))
    permit_of_first = await rate_limiter.acquire("first", 1)
    waiting = [asyncio.create_task(rate_limiter.acquire("second", 1)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    rate_limiter.release(permit_of_first, 1)  # The second is let through at this moment ...
    waiting[1].cancel()  # ... and goes away before it knows.
    permit = await asyncio.wait_for(waiting[2], timeout=5)
    rate_limiter.release(permit, 1)
    assert (rate_limiter.in_flight, rate_limiter.waiting) == (0, 0)
    rate_limiter.release(await asyncio.wait_for(rate_limiter.acquire("third", 1), timeout=5), 1)


async def test_a_worker_that_requested_a_pause_gets_no_call_meanwhile():
    rate_limiter, clock = RateLimiter(Limits()), asyncio.get_running_loop().time
    rate_limiter.pause(0.2)
    began = clock()
    await asyncio.gather(rate_limiter.acquire("a", 1), rate_limiter.acquire("b", 1))
    assert clock() - began >= 0.19


async def test_cancelled_permit_frees_its_place_in_the_minute():
    rate_limiter = RateLimiter(Limits(rpm=1))
    rate_limiter.cancel(await rate_limiter.acquire("a", 1))
    rate_limiter.release(await asyncio.wait_for(rate_limiter.acquire("b", 1), timeout=5), 1)


steps = st.lists(st.tuples(st.floats(0, 30), st.floats(0.5, 40)), max_size=60)


@given(steps)
def test_no_interval_of_window_length_exceeds_the_limit(waits_and_amounts):
    window, now, admitted = SlidingWindow(100, 60), 0.0, []
    for wait, amount in waits_and_amounts:
        now += wait
        now += window.wait_s(amount, now)
        assert window.wait_s(amount, now) < 1e-6
        window.add(amount, now)
        admitted.append((now, amount))
    for start, _ in admitted:
        inside = [amount for at, amount in admitted if start <= at < start + 60 - 1e-6]
        assert sum(inside) <= 100 + 1e-6


def test_sliding_window_computes_the_wait():
    window = SlidingWindow(10, 60)
    window.add(6, 0.0)
    window.add(3, 20.0)
    assert window.wait_s(1, 30.0) == 0
    assert window.wait_s(5, 30.0) == 30.0
    assert window.wait_s(8, 30.0) == 50.0
    assert window.wait_s(5, 60.0) == 0


def test_amount_above_the_limit_waits_for_an_empty_window():
    window = SlidingWindow(10, 60)
    assert window.wait_s(50, 0.0) == 0
    window.add(50, 0.0)
    assert window.wait_s(1, 1.0) == 59.0
    assert window.wait_s(50, 1.0) == 59.0


def test_corrected_entry_frees_or_takes_room_in_the_window():
    window = SlidingWindow(10, 60)
    entry = window.add(8, 0.0)
    window.correct(entry, 2)
    assert window.total(1.0) == 2
    window.correct(entry, 9)
    assert window.wait_s(2, 1.0) == 59.0
    assert window.total(60.0) == 0
    window.correct(entry, 1)
    assert window.total(61.0) == 0


def test_a_window_without_a_limit_counts():
    window = SlidingWindow(math.inf, 60)
    for at in range(100):
        window.add(1, float(at))
    assert window.total(99.0) == 60


def test_a_window_drops_old_entries_without_being_read():
    window = SlidingWindow(math.inf, 60)
    for at in range(1000):
        window.add(1, float(at))
    assert len(window._entries) <= 61
