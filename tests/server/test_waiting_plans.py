"""A plan that waits for approval is not lost when its caller disconnects or cancels, nor to plans of another caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from approving_team import PLAN
from podium.calls import CallState
from podium.errors import APIError
from podium.planners.planner import PrewrittenPlans
from podium.server import approval
from podium.server.approval import MAX_IN_PROCESS, ApprovedPlan, WaitingPlans
from podium.server.background import BackgroundQuestions
from podium.server.keys import Caller, Keys, open_key_store
from podium.server.prepared_question import PreparedQuestion
from podium.server.requests import ChatRequest
from podium.server.service import Service
from podium.store import TraceStore
from podium.team import Runner
from podium.team.settings import PlanSettings, TeamSettings
from podium.team.team import Team
from podium.trace import Trace
from podium.types import Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker

QUESTION = Question(text="What is 6 x 7?")
ANN, BOB = Caller(name="ann", id="pk-1"), Caller(name="bob", id="pk-2")


async def planned(caller: Caller) -> Trace:
    """A plan of this caller."""
    runner = Runner(PrewrittenPlans((PLAN,)), Pool([ScriptedWorker(name, {}) for name in ("wren", "lark")]))
    trace = await runner.dry_run(QUESTION)
    assert trace.status == "planned"
    return trace.model_copy(update={"owner": caller.name})


@pytest.fixture
async def plans(tmp_path: Path) -> AsyncIterator[WaitingPlans]:
    store = TraceStore(tmp_path / "traces.sqlite")
    yield WaitingPlans(store)
    store.close()


@pytest.mark.parametrize("run_elsewhere", [False, True])
async def test_cancelled_approval_leaves_the_plan_waiting_unless_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_elsewhere: bool
) -> None:
    stores = [TraceStore(tmp_path / "traces.sqlite") for _ in range(2)]
    here, there = (WaitingPlans(store) for store in stores)
    plan = await planned(ANN)
    here.add(plan, keep=True)
    stores[0].flush()
    call, deleted, answered = stores[0].to_thread, asyncio.Event(), asyncio.Event()

    async def slow(*args: Any) -> bool:
        was_there = await call(*args)
        deleted.set()
        await answered.wait()
        return was_there

    monkeypatch.setattr(stores[0], "to_thread", slow)
    if run_elsewhere:
        await there.take(plan)
    taking = asyncio.create_task(here.take(plan))
    await deleted.wait()
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    answered.set()
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    stores[0].flush()
    if not run_elsewhere:
        assert await there.find(plan.id, ANN) == plan
        await there.take(plan)
    for waiting in (here, there):
        with pytest.raises(APIError, match="There is no plan"):
            await waiting.take(plan)
    for store in stores:
        store.close()


async def test_a_plan_that_is_cancelled_before_it_begins_to_run_leaves_its_trace(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "traces.sqlite")
    pool = Pool([ScriptedWorker(name, {"": "42."}, delay=60.0) for name in ("wren", "lark")])
    team = Team.from_settings(TeamSettings(plan=PlanSettings(planner="random")), pool, call_state=CallState())
    service = Service(team, store=store, keys=Keys(open_key_store(tmp_path / "traces.sqlite")))
    background = BackgroundQuestions(service)
    plan, request = await planned(ANN), ChatRequest(QUESTION)
    service.plans.add(plan, keep=True)
    approved = ApprovedPlan.of(plan, request)
    await background.start(
        PreparedQuestion(service, request, ANN, Runner(approved.planner(pool), pool), plan.id, approved)
    )
    assert [await background.has(plan.id, caller) for caller in (ANN, BOB)] == [True, False]
    await background.cancel(plan.id)
    assert not await background.has(plan.id, ANN)
    await background.close()
    trace = store.get(plan.id)
    assert (trace.status, trace.rounds[0].workflow) == ("cancelled", plan.rounds[0].workflow)
    await service.close()
    await team.close()
    store.close()


async def test_many_plans_of_one_caller_push_out_its_own_alone(plans: WaitingPlans) -> None:
    of_ann, of_bob = await planned(ANN), await planned(BOB)
    plans.add(of_ann, keep=False)
    for number in range(1001):
        plans.add(of_bob.model_copy(update={"id": f"{number:032x}"}), keep=False)
    assert await plans.find(of_ann.id, ANN) == of_ann
    await plans.find(f"{1001 - MAX_IN_PROCESS:032x}", BOB)
    with pytest.raises(APIError, match="There is no plan"):
        await plans.find(f"{1000 - MAX_IN_PROCESS:032x}", BOB)


async def test_a_plan_that_expired_is_dropped_when_the_next_one_comes(
    monkeypatch: pytest.MonkeyPatch, plans: WaitingPlans
) -> None:
    old = await planned(ANN)
    with monkeypatch.context() as later:
        later.setattr(approval, "PLAN_LIFETIME_S", 0.0)
        plans.add(old, keep=False)
        plans.add(await planned(ANN), keep=False)
    with pytest.raises(APIError, match="There is no plan"):
        await plans.find(old.id, ANN)
