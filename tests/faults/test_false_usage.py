"""Endpoints that count tokens that cannot be: no budget is passed or ended by it, and trace and log say so.

Add a case for every new way of counting wrongly.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from podium.calls.call_state import CallState
from podium.conductor import Conductor
from podium.conductor.policy import WorkerPolicy
from podium.planners import Single
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.team import Runner
from podium.types import Budget, Question
from podium_testing import FaultServer, Rule, WrongUsage

TEXT = "four" * 200
CALL_USD = 2.0 * 200 / 1e6
"""What 200 tokens of output cost; the input costs as little as $0.00003."""
NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0}
FALSE = {
    "none": (NO_TOKENS, "0 tokens of input and 0 tokens of output"),
    "one for a long text": ({"prompt_tokens": 12, "completion_tokens": 1}, "1 tokens of output"),
    "no output": ({"prompt_tokens": 12, "completion_tokens": 0}, "0 tokens of output"),
    "a hundred million": ({"prompt_tokens": 12, "completion_tokens": 10**8}, f"{10**8} tokens of output"),
    "much input": ({"prompt_tokens": 10**8, "completion_tokens": 12}, f"{10**8} tokens of input"),
    "much reasoning": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 10**8,
            "completion_tokens_details": {"reasoning_tokens": 10**8 - 9},
        },
        f"{10**8} tokens of output",
    ),
    "a total": (
        {"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 10**8},
        f"{10**8 - 12} tokens of output",
    ),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("usage", "reported"), FALSE.values(), ids=FALSE)
async def test_impossible_usage_is_estimated_marked_and_logged_once(
    pool_at, usage: dict[str, Any], reported: str, streamed: bool, caplog: pytest.LogCaptureFixture
):
    async with FaultServer(TEXT, rules=[Rule(fault=WrongUsage(usage=usage))]) as server:
        also = f"stream = {streamed}".lower()
        pool = pool_at(server, "a", also=also, limits="max_tokens = 50, retries = 0")
        runner = Runner(Single("a"), pool)
        with caplog.at_level(logging.WARNING, "podium.calls"):
            traces = [await runner.answer(Question(text=f"What is {n} + 2?")) for n in range(3)]
        await pool.close()
    for trace in traces:
        assert trace.spans[0].usage.implausible is not None
        assert reported in trace.spans[0].usage.implausible
        assert trace.usage.estimated
        assert trace.cost_usd < 2 * CALL_USD
        assert trace.usage.output_tokens >= 9
    assert [record.args[0] for record in caplog.records if record.name == "podium.calls"] == ["a"]


async def test_false_usage_of_zero_does_not_bypass_the_day_budget(pool_at):
    async with FaultServer(TEXT, rules=[Rule(fault=WrongUsage(usage=NO_TOKENS))]) as server:
        pool = pool_at(server, "a", limits="max_tokens = 200, retries = 0")
        runner = Runner(
            Single("a"), pool, call_state=CallState(spend_limits=[SharedSpendLimit(None, "day", 0.0012)])
        )
        traces = [await runner.answer(Question(text=f"What is {n} + 2?")) for n in range(6)]
        await pool.close()
    assert [trace.status for trace in traces] == ["ok"] * 2 + ["failed"] * 4
    assert len(server.requests) == 2


async def test_one_reply_with_false_usage_does_not_use_up_the_day_budget(pool_at):
    usage = {"prompt_tokens": 12, "completion_tokens": 10**8}
    async with FaultServer("Four.", rules=[Rule(fault=WrongUsage(usage=usage), times=1)]) as server:
        pool = pool_at(server, "a", limits="max_tokens = 50, retries = 0")
        day = SharedSpendLimit(None, "day", 100.0)
        runner = Runner(Single("a"), pool, call_state=CallState(spend_limits=[day]))
        for number in range(2):
            trace = await runner.answer(Question(text=f"What is {number} + 2?"))
            assert trace.status == "ok"
        await pool.close()
    assert day.spent_usd < 0.001


@pytest.mark.parametrize(
    "budget", [Budget(usd=1.9 * CALL_USD), Budget(tokens=480), Budget(usd=0.5 * CALL_USD)], ids=repr
)
async def test_a_second_try_of_a_conductor_is_made_only_within_the_budget(pool_at, budget: Budget):
    async with FaultServer(TEXT) as server:
        pool = pool_at(server, "a", limits="max_tokens = 200, retries = 0")
        conductor = Conductor(WorkerPolicy(pool[0]), second_try=True)
        trace = await Runner(conductor, pool, budget=budget).answer(Question(text="What is 2 + 2?"))
        await pool.close()
    assert trace.cost_usd <= (budget.usd or 1.0)
    assert trace.usage.tokens <= (budget.tokens or 10**6)
    assert len(server.requests) <= 1
