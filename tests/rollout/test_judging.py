"""What a judge's call takes from the spend limits, however it ends."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from podium.calls import Dispatcher
from podium.calls.spend_limits import SharedSpendLimit
from podium.rollout.judging import JudgePayment
from podium.trace import Reply
from podium.types import Message, Price, Profile, Spent
from podium.workers.base import Request
from podium.workers.scripted import ScriptedWorker


async def test_a_call_that_is_cancelled_is_paid_for_as_far_as_its_cost_is_known() -> None:
    judge = ScriptedWorker("judy", {}, profile=Profile(name="judy", price=Price(output=1000.0)))
    begun = asyncio.Event()

    async def call() -> Reply:
        begun.set()
        request.receipt.add(Spent(cost_usd=0.5))
        await asyncio.Event().wait()
        raise AssertionError("it is cancelled")

    with closing(SharedSpendLimit(None, "run", 100.0)) as spend_limit:
        pay = JudgePayment(Dispatcher(spend_limits=[spend_limit]))
        request = Request((Message(role="user", content="Right?"),), seed="0")
        paying = asyncio.create_task(pay(judge, request, call))
        await begun.wait()
        assert spend_limit.reserved_usd > 0
        paying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await paying
        assert (spend_limit.spent_usd, spend_limit.reserved_usd) == (0.5, 0.0)
