"""A worker that is down, from the start or from the middle on, and that comes back."""

import asyncio
import time

from podium.calls import Dispatcher
from podium.planners import Single
from podium.team import Runner
from podium.types import Question
from podium.workers.pool import load_pool
from podium_testing import FaultServer, Hang, Rule, Status

ANSWER = "Answer: 4"
LIMITS = "timeout = 0.5, retries = 3, probe_after = 0.6"


def question(number: int) -> Question:
    return Question(text=f"What is {number} + 2?")


def pool_with_fallback(pool_at, server, tmp_path):
    pool_at(server, "a", "b", limits=LIMITS)
    path = tmp_path / "pool.toml"
    path.write_text(path.read_text().replace('model = "a"\n', 'model = "a"\nfallback = "b"\n'))
    return load_pool(path)


def asked(server: FaultServer, model: str) -> int:
    return sum(request.model == model for request in server.requests)


async def test_a_worker_that_hangs_from_the_start_costs_one_timeout(pool_at, tmp_path):
    async with FaultServer(ANSWER, rules=[Rule(fault=Hang(), model="a")]) as server:
        pool = pool_with_fallback(pool_at, server, tmp_path)
        runner, waited = Runner(Single("a"), pool), []
        for number in range(4):
            began = time.monotonic()
            trace = await runner.answer(question(number))
            waited.append(time.monotonic() - began)
            assert trace.answer == ANSWER
        assert asked(server, "a") == 1
        assert waited[0] >= 0.5 > max(waited[1:])
        await pool.close()


async def test_a_worker_down_in_the_middle_costs_one_timeout_for_all_at_once(pool_at, tmp_path):
    async with FaultServer(ANSWER) as server:
        pool = pool_with_fallback(pool_at, server, tmp_path)
        runner = Runner(Single("a"), pool)
        await asyncio.gather(*(runner.answer(question(number)) for number in range(8)))
        server.rules = [Rule(fault=Hang(), model="a")]
        before = asked(server, "a")
        began = time.monotonic()
        traces = await asyncio.gather(*(runner.answer(question(number)) for number in range(8)))
        assert (
            time.monotonic() - began < 4 * 0.5
        )  # Each for itself: four tries of half a second, and the waits.
        assert asked(server, "a") - before == 8
        traces += await asyncio.gather(*(runner.answer(question(number)) for number in range(8)))
        assert asked(server, "a") - before <= 8 + 1
        assert {trace.answer for trace in traces} == {ANSWER}
        await pool.close()


async def test_a_worker_that_returns_is_used_again_after_its_rest(pool_at, tmp_path):
    async with FaultServer(ANSWER, rules=[Rule(fault=Hang(), model="a")]) as server:
        pool = pool_with_fallback(pool_at, server, tmp_path)
        runner = Runner(Single("a"), pool)
        await runner.answer(question(0))
        assert runner.dispatcher.status[0].state == "open"
        server.rules = []
        await asyncio.sleep(0.65)
        trace = await runner.answer(question(1))
        assert trace.spans[0].answered_by == "a"
        assert runner.dispatcher.status[0].state == "closed"
        await pool.close()


async def test_without_a_fallback_questions_wait_for_the_worker_and_live_on(pool_at):
    async with FaultServer(ANSWER) as server:
        pool = pool_at(server, "a", limits=LIMITS + ", failures_to_open = 2")
        runner = Runner(Single("a"), pool, dispatcher=Dispatcher())
        server.rules = [Rule(fault=Status(code=503), times=3)]
        traces = await asyncio.gather(*(runner.answer(question(number)) for number in range(6)))
        assert [trace.answer for trace in traces] == [ANSWER] * 6
        await pool.close()


async def test_one_hanging_call_among_many_that_succeed_opens_nothing(pool_at):
    async with FaultServer(ANSWER, rules=[Rule(fault=Hang(), times=1)]) as server:
        pool = pool_at(server, "a", limits=LIMITS)
        runner = Runner(Single("a"), pool)

        async def busy() -> None:
            for number in range(40):
                await runner.answer(question(number))
                await asyncio.sleep(0.02)

        await asyncio.gather(busy(), busy())
        assert runner.dispatcher.status[0].state == "closed"
        assert sum(request.fault == "hang" for request in server.requests) == 1
        await pool.close()
