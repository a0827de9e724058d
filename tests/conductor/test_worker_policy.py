"""A model behind an endpoint conducts, against a real server on this machine."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from podium.calls import CallContext, CallState
from podium.conductor import Conductor, Sampling
from podium.conductor.open import build_endpoint
from podium.conductor.policy import WorkerPolicy
from podium.conductor.settings import ConductorSettings
from podium.errors import WorkerError
from podium.planners.planner import PlanRequest
from podium.team import Runner
from podium.trace.serialization import read_document, to_json
from podium.types import Limits, Message, Price, Profile, Question
from podium.workers import Pool, ScriptedWorker
from podium.workflow import PlanError, Workflow
from podium_testing import Answer, FaultServer, RateLimited, Rule, Status
from podium_testing.exchange import Fault

PROMPT = (Message(role="system", content="Lead."), Message(role="user", content="3 + 4?"))
POOL = Pool([ScriptedWorker("a", [])])
PLAN = 'model_id = [0]\nsubtasks = ["Add 3 and 4."]\naccess_list = [[]]'


def endpoint(*faults: Fault, text: str = PLAN, finish: str = "stop") -> FaultServer:
    """Answers with these faults, then with a plan."""
    answer = Answer(text, input_tokens=1000, output_tokens=100, finish_reason=finish)
    return FaultServer(answer, rules=[Rule(fault=fault, times=1) for fault in faults])


Serve = Callable[..., Awaitable[WorkerPolicy]]


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def start(server: FaultServer, **table: Any) -> WorkerPolicy:
            await stack.enter_async_context(server)
            worker = build_endpoint(ConductorSettings(base_url=server.url, model="m", **table), POOL)
            stack.push_async_callback(worker.close)
            return WorkerPolicy(worker)

        monkeypatch.setattr("podium.calls.worker_call._LONGEST_WAIT_S", 0.0)  # The same tries, without waits.
        yield start


async def test_a_temperature_is_sent_only_where_configured_and_never_a_seed(serve: Serve) -> None:
    plain, told = endpoint(), endpoint()
    sampling = Sampling(temperature=0.5, seed="x")
    await (await serve(plain)).complete(PROMPT, sampling)
    await (await serve(told, temperature=0.7)).complete(PROMPT, sampling)
    silent, warm = (server.requests[0].body for server in (plain, told))
    assert not {"temperature", "seed"} & set(silent)
    assert warm["temperature"] == 0.7
    assert "seed" not in warm


async def test_conducting_endpoint_gets_8192_max_tokens_unless_limited(serve: Serve) -> None:
    plain, limited = endpoint(), endpoint()
    await (await serve(plain)).complete(PROMPT, Sampling())
    await (await serve(limited, limits=Limits(max_tokens=9000))).complete(PROMPT, Sampling())
    assert [server.requests[0].body["max_tokens"] for server in (plain, limited)] == [8192, 9000]


async def test_without_a_price_a_completion_is_unpriced(serve: Serve) -> None:
    unpriced, priced = CallContext.unlimited(), CallContext.unlimited()
    await (await serve(endpoint())).complete(PROMPT, Sampling(), unpriced)
    assert (unpriced.ledger.spent.cost_usd, unpriced.ledger.spent.unpriced) == (0.0, True)
    await (await serve(endpoint(), price=Price(input=1.0))).complete(PROMPT, Sampling(), priced)
    assert (priced.ledger.spent.cost_usd, priced.ledger.spent.unpriced) == (pytest.approx(0.001), False)


@pytest.mark.parametrize(
    ("faults", "calls"),
    [
        pytest.param([Status(code=401)], 1, id="what will not pass"),
        pytest.param([RateLimited(retry_after=3600.0)], 1, id="a wait too long"),
        pytest.param([Status(code=500)] * 9, 4, id="too often"),
    ],
)
async def test_a_failure_for_good_is_a_worker_error(serve: Serve, faults: list[Fault], calls: int) -> None:
    server = endpoint(*faults)
    with pytest.raises(WorkerError, match=r"status (401|429|500)"):
        await (await serve(server)).complete(PROMPT, Sampling())
    assert len(server.requests) == calls


@pytest.mark.parametrize(
    ("faults", "kinds", "status"),
    [
        pytest.param([Status(code=503), RateLimited()], ["status", "rate_limited", None], "ok", id="at last"),
        pytest.param([Status(code=500)] * 9, ["status"] * 4, "failed", id="never"),
    ],
)
async def test_the_trace_has_the_tries_of_the_plans_calls(
    serve: Serve, faults: list[Fault], kinds: list[str | None], status: str
) -> None:
    conductor = Conductor(await serve(endpoint(*faults)))
    trace = await Runner(conductor, Pool([ScriptedWorker("a", ["7"])])).answer(Question(text="3 + 4?"))
    (round_,) = trace.rounds
    attempts = round_.plan.attempts
    assert trace.status == status
    assert [(one.worker, one.error_kind) for one in attempts] == [(conductor.policy.name, k) for k in kinds]
    assert all(0 <= one.started_s <= one.ended_s <= trace.seconds for one in attempts)
    assert read_document(to_json(trace)) == trace


async def test_a_trace_without_the_plans_tries_is_read(serve: Serve) -> None:
    runner = Runner(Conductor(await serve(endpoint())), Pool([ScriptedWorker("a", ["7"])]))
    document = json.loads(to_json(await runner.answer(Question(text="3 + 4?"))))
    assert document["rounds"][0]["plan"].pop("attempts")
    assert read_document(json.dumps(document)).rounds[0].plan.attempts == ()


async def test_plans_of_questions_wait_in_queues_of_their_own() -> None:
    chief, call_state = ScriptedWorker("chief", [PLAN] * 9, limits=Limits(concurrency=1)), CallState()
    limiter = call_state.channel(chief).rate_limiter
    runner = Runner(Conductor(WorkerPolicy(chief)), Pool([chief]), call_state=call_state)
    plans_before: list[int] = []

    async def step(question: str) -> None:
        permit = await limiter.acquire(question, 1)
        plans_before.append(len(chief.requests))
        limiter.release(permit, 1)

    in_flight = await limiter.acquire("another", 1)
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(runner.answer(Question(text=f"{number} + 4?")))
        while limiter.waiting < 3:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)
        for number in range(3):
            group.create_task(step(f"a question with a plan, {number}"))
        while limiter.waiting < 6:  # noqa: ASYNC110
            await asyncio.sleep(0)
        limiter.release(in_flight, 1)
    assert plans_before == [3, 3, 3]


@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_plan_inside_a_truncated_thought_is_ignored(serve: Serve, finish: str) -> None:
    policy = await serve(endpoint(text=f"<think>Perhaps so:\n{PLAN}", finish=finish))
    plan = await Conductor(policy).plan(PlanRequest(Question(text="3 + 4?"), (Profile(name="a"),)))
    assert isinstance(plan.decision, PlanError if finish == "length" else Workflow)


async def test_the_thoughts_of_an_endpoint_are_no_part_of_its_plan(serve: Serve) -> None:
    policy = await serve(endpoint(text=f"<think>\nmodel_id = [9]\n</think>\n{PLAN}"))
    completion = await policy.complete(PROMPT, Sampling())
    assert (completion.text, completion.reasoning) == (PLAN, "model_id = [9]")
