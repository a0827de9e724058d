"""A model behind an endpoint conducts, against a real server on this machine."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from podium.calls import CallContext, Dispatcher
from podium.conductor import Conductor, Sampling
from podium.conductor.open import build_endpoint
from podium.conductor.policy import WorkerPolicy
from podium.conductor.settings import ConductorSettings
from podium.errors import WorkerError
from podium.planner import PlanRequest
from podium.team import Runner
from podium.trace.serialization import read_document, to_json
from podium.types import Limits, Message, Price, Profile, Question
from podium.workers import Pool, ScriptedWorker, Worker
from podium.workflow import PlanError, Workflow

PROMPT = (Message(role="system", content="Lead."), Message(role="user", content="3 + 4?"))
POOL = Pool([ScriptedWorker("a", [])])
PLAN = 'model_id = [0]\nsubtasks = ["Add 3 and 4."]\naccess_list = [[]]'


class Endpoint:
    """Answers with the given statuses, then with a plan; keeps the bodies that it was sent."""

    def __init__(
        self, *statuses: int, headers: dict[str, str] | None = None, text: str = PLAN, finish: str = "stop"
    ) -> None:
        self._statuses = list(statuses)
        self._choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
        self._headers = headers or {}
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.bodies.append(json.loads(await request.read()))
        self.keys.append(request.headers.get("Authorization"))
        status = self._statuses.pop(0) if self._statuses else 200
        if status != 200:
            return web.json_response({"error": {"message": "not now"}}, status=status, headers=self._headers)
        return web.json_response(
            {
                "choices": [self._choice],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
            }
        )


Serve = Callable[..., Awaitable[WorkerPolicy]]


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    runners: list[web.AppRunner] = []
    workers: list[Worker] = []

    async def start(endpoint: Endpoint, *, model: str = "m", **table: Any) -> WorkerPolicy:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", endpoint.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        host, port = runner.addresses[0][:2]
        settings = ConductorSettings(base_url=f"http://{host}:{port}/v1", model=model, **table)
        workers.append(build_endpoint(settings, POOL))
        return WorkerPolicy(workers[-1])

    monkeypatch.setattr("podium.calls.worker_call._LONGEST_WAIT_S", 0.0)  # The same tries, without the waits.
    yield start
    for worker in workers:
        await worker.close()
    for runner in runners:
        await runner.cleanup()


async def test_a_temperature_is_sent_only_where_configured_and_never_a_seed(serve: Serve) -> None:
    endpoint = Endpoint()
    sampling = Sampling(temperature=0.5, seed="x")
    await (await serve(endpoint)).complete(PROMPT, sampling)
    await (await serve(endpoint, temperature=0.7)).complete(PROMPT, sampling)
    silent, warm = endpoint.bodies
    assert not {"temperature", "seed"} & set(silent)
    assert warm["temperature"] == 0.7
    assert "seed" not in warm


async def test_conducting_endpoint_gets_8192_max_tokens_unless_limited(serve: Serve) -> None:
    endpoint = Endpoint()
    await (await serve(endpoint)).complete(PROMPT, Sampling())
    await (await serve(endpoint, limits=Limits(max_tokens=9000))).complete(PROMPT, Sampling())
    assert [body["max_tokens"] for body in endpoint.bodies] == [8192, 9000]


async def test_without_a_price_a_completion_is_unpriced(serve: Serve) -> None:
    unpriced, priced = CallContext.unlimited(), CallContext.unlimited()
    await (await serve(Endpoint())).complete(PROMPT, Sampling(), unpriced)
    assert (unpriced.ledger.spent.cost_usd, unpriced.ledger.spent.unpriced) == (0.0, True)
    await (await serve(Endpoint(), price=Price(input=1.0))).complete(PROMPT, Sampling(), priced)
    assert (priced.ledger.spent.cost_usd, priced.ledger.spent.unpriced) == (pytest.approx(0.001), False)


@pytest.mark.parametrize(
    ("endpoint", "calls"),
    [
        pytest.param(Endpoint(401), 1, id="what will not pass"),
        pytest.param(Endpoint(429, headers={"Retry-After": "3600"}), 1, id="a wait too long"),
        pytest.param(Endpoint(*[500] * 9), 4, id="too often"),
    ],
)
async def test_a_failure_for_good_is_a_worker_error(serve: Serve, endpoint: Endpoint, calls: int) -> None:
    with pytest.raises(WorkerError, match="not now"):
        await (await serve(endpoint)).complete(PROMPT, Sampling())
    assert len(endpoint.bodies) == calls


@pytest.mark.parametrize(
    ("statuses", "kinds", "status"),
    [
        pytest.param((503, 429), ["status", "rate_limited", None], "ok", id="it answers at last"),
        pytest.param((500,) * 9, ["status"] * 4, "failed", id="it never answers"),
    ],
)
async def test_the_trace_has_the_tries_of_the_plans_calls(
    serve: Serve, statuses: tuple[int, ...], kinds: list[str | None], status: str
) -> None:
    conductor = Conductor(await serve(Endpoint(*statuses)))
    trace = await Runner(conductor, Pool([ScriptedWorker("a", ["7"])])).answer(Question(text="3 + 4?"))
    (round_,) = trace.rounds
    attempts = round_.plan.attempts
    assert trace.status == status
    assert [(one.worker, one.error_kind) for one in attempts] == [(conductor.policy.name, k) for k in kinds]
    assert all(0 <= one.started_s <= one.ended_s <= trace.seconds for one in attempts)
    assert read_document(to_json(trace)) == trace


async def test_a_trace_without_the_plans_tries_is_read(serve: Serve) -> None:
    runner = Runner(Conductor(await serve(Endpoint())), Pool([ScriptedWorker("a", ["7"])]))
    document = json.loads(to_json(await runner.answer(Question(text="3 + 4?"))))
    assert document["rounds"][0]["plan"].pop("attempts")
    assert read_document(json.dumps(document)).rounds[0].plan.attempts == ()


async def test_plans_of_questions_wait_in_queues_of_their_own() -> None:
    chief, dispatcher = ScriptedWorker("chief", [PLAN] * 9, limits=Limits(concurrency=1)), Dispatcher()
    limiter = dispatcher.channel(chief).rate_limiter
    runner = Runner(Conductor(WorkerPolicy(chief)), Pool([chief]), dispatcher=dispatcher)
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
    policy = await serve(Endpoint(text=f"<think>Perhaps so:\n{PLAN}", finish=finish))
    plan = await Conductor(policy).plan(PlanRequest(Question(text="3 + 4?"), (Profile(name="a"),)))
    assert isinstance(plan.decision, PlanError if finish == "length" else Workflow)


async def test_the_thoughts_of_an_endpoint_are_no_part_of_its_plan(serve: Serve) -> None:
    policy = await serve(Endpoint(text=f"<think>\nmodel_id = [9]\n</think>\n{PLAN}"))
    completion = await policy.complete(PROMPT, Sampling())
    assert (completion.text, completion.reasoning) == (PLAN, "model_id = [9]")
