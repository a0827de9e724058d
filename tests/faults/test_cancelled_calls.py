"""Whoever goes away, and whatever limit is reached: calls in flight end at once, as the server sees it."""

import asyncio
import time

import pytest

from podium.planners import SelfConsistency
from podium.team import QuestionEnded, Runner
from podium.types import Budget, Question
from podium_testing import FaultServer, Hang, Rule, SlowDrip

QUESTION = Question(text="What is 2 + 2?")


@pytest.mark.parametrize("also", ["", "stream = true"])
@pytest.mark.parametrize("fault", [Hang(), SlowDrip(seconds=5.0)])
async def test_cancelled_question_cancels_all_calls_in_flight(pool_at, fault, also):
    async with FaultServer("Four, of course.", rules=[Rule(fault=fault)]) as server:
        pool = pool_at(server, "a", also=also, limits="timeout = 60, retries = 0")
        traces = []
        runner = Runner(SelfConsistency("a", 4), pool)

        def keep(event: object) -> None:
            if isinstance(event, QuestionEnded):
                traces.append(event.trace)

        asking = asyncio.create_task(runner.answer(QUESTION, on_event=keep))
        async with asyncio.timeout(20):
            await server.wait_for_requests(4)
        cancelled = time.monotonic()
        asking.cancel()
        await asyncio.wait([asking])
        async with asyncio.timeout(5):
            await server.wait_until_idle()
        gone = [request.gone_at for request in server.requests]
        assert len(gone) == 4
        assert all(at is not None and at - cancelled < 2.0 for at in gone)
        assert [a.error_kind for span in traces[0].spans for a in span.attempts] == ["cancelled"] * 4
        await pool.close()


async def test_time_limit_cancels_calls_in_flight_and_keeps_finished_answers(pool_at):
    async with FaultServer("Four.", rules=[Rule(fault=Hang(), after=1)]) as server:
        pool = pool_at(server, "a", limits="timeout = 60, retries = 0")
        runner = Runner(SelfConsistency("a", 3), pool, budget=Budget(seconds=0.5))
        trace = await runner.answer(QUESTION)
        async with asyncio.timeout(5):
            await server.wait_until_idle()
        assert (trace.status, trace.answer) == ("degraded", "Four.")
        assert [request.went_away for request in server.requests] == [False, True, True]
        await pool.close()
