"""A model behind an endpoint conducts, against a real server on this machine."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import stamina
from aiohttp import web

from podium.conductor import Conductor, Policy, Sampling
from podium.conductor.opening import build_endpoint
from podium.conductor.policy import WorkerPolicy
from podium.conductor.settings import ConductorSettings
from podium.errors import WorkerError
from podium.planner import PlanRequest
from podium.types import Limits, Message, Price, Profile, Question, Usage
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
async def serve() -> AsyncIterator[Serve]:
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

    with stamina.set_testing(True, attempts=4, cap=True):  # the same tries, without the waits
        yield start
    for worker in workers:
        await worker.close()
    for runner in runners:
        await runner.cleanup()


async def test_a_served_model_conducts(serve: Serve) -> None:
    endpoint = Endpoint()
    policy: Policy = await serve(endpoint, model="big", price=Price(input=1.0, output=10.0))
    plan = await Conductor(policy).plan(PlanRequest(Question(text="3 + 4?"), (Profile(name="a"),)))
    assert isinstance(plan.decision, Workflow)
    assert plan.spent.usage == Usage(input_tokens=1000, output_tokens=100)
    assert plan.spent.cost_usd == pytest.approx(0.002)
    assert policy.name == "big"
    assert endpoint.bodies[0]["model"] == "big"
    assert [message["role"] for message in endpoint.bodies[0]["messages"]] == ["system", "user"]


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
    completion = await (await serve(Endpoint())).complete(PROMPT, Sampling())
    assert (completion.spent.cost_usd, completion.spent.unpriced) == (0.0, True)
    priced = await (await serve(Endpoint(), price=Price(input=1.0))).complete(PROMPT, Sampling())
    assert (priced.spent.cost_usd, priced.spent.unpriced) == (pytest.approx(0.001), False)


async def test_extra_keys_are_sent_to_the_endpoint_unchanged(serve: Serve) -> None:
    endpoint = Endpoint()
    policy = await serve(endpoint, extra={"reasoning_effort": "low"})
    await policy.complete(PROMPT, Sampling())
    assert endpoint.bodies[0]["reasoning_effort"] == "low"


async def test_a_retryable_failure_is_retried(serve: Serve) -> None:
    endpoint = Endpoint(503, 429)
    completion = await (await serve(endpoint)).complete(PROMPT, Sampling())
    assert completion.text == PLAN
    assert len(endpoint.bodies) == 3


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


async def test_no_retries_means_one_call(serve: Serve) -> None:
    endpoint = Endpoint(500)
    policy = await serve(endpoint, limits=Limits(retries=0))
    with pytest.raises(WorkerError):
        await policy.complete(PROMPT, Sampling())
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_plan_inside_a_truncated_thought_is_ignored(serve: Serve, finish: str) -> None:
    policy = await serve(Endpoint(text=f"<think>Perhaps so:\n{PLAN}", finish=finish))
    plan = await Conductor(policy).plan(PlanRequest(Question(text="3 + 4?"), (Profile(name="a"),)))
    assert isinstance(plan.decision, PlanError if finish == "length" else Workflow)


async def test_the_thoughts_of_an_endpoint_are_no_part_of_its_plan(serve: Serve) -> None:
    policy = await serve(Endpoint(text=f"<think>\nmodel_id = [9]\n</think>\n{PLAN}"))
    completion = await policy.complete(PROMPT, Sampling())
    assert (completion.text, completion.reasoning) == (PLAN, "model_id = [9]")
