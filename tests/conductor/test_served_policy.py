"""A served policy, against a real server on this machine."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import stamina
from aiohttp import web

from podium.conductor import Conductor, Policy, Sampling
from podium.conductor.served_policy import ServedPolicy
from podium.errors import WorkerError
from podium.planner import PlanRequest
from podium.types import Limits, Message, Price, Profile, Question, Usage
from podium.workers.chat.client import ChatClient
from podium.workflow import Workflow

PROMPT = (Message(role="system", content="Lead."), Message(role="user", content="3 + 4?"))
PLAN = 'model_id = [0]\nsubtasks = ["Add 3 and 4."]\naccess_list = [[]]'


class Endpoint:
    """Answers with the given statuses, then with a plan; keeps the bodies that it was sent."""

    def __init__(self, *statuses: int, headers: dict[str, str] | None = None) -> None:
        self._statuses = list(statuses)
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
                "choices": [{"message": {"role": "assistant", "content": PLAN}}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
            }
        )


Serve = Callable[[Endpoint], Awaitable[ChatClient]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    runners: list[web.AppRunner] = []
    clients: list[ChatClient] = []

    async def start(endpoint: Endpoint) -> ChatClient:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", endpoint.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        host, port = runner.addresses[0][:2]
        clients.append(ChatClient(f"http://{host}:{port}/v1", "k"))
        return clients[-1]

    with stamina.set_testing(True, attempts=4, cap=True):  # the same tries, without the waits
        yield start
    for client in clients:
        await client.close()
    for runner in runners:
        await runner.cleanup()


async def test_a_served_model_conducts(serve: Serve) -> None:
    endpoint = Endpoint()
    policy: Policy = ServedPolicy(await serve(endpoint), "big", price=Price(input=1.0, output=10.0))
    plan = await Conductor(policy).plan(PlanRequest(Question(text="3 + 4?"), (Profile(name="a"),)))
    assert isinstance(plan.decision, Workflow)
    assert plan.usage == Usage(input_tokens=1000, output_tokens=100)
    assert plan.cost_usd == pytest.approx(0.002)
    assert policy.name == "big"
    assert endpoint.bodies[0]["model"] == "big"
    assert [message["role"] for message in endpoint.bodies[0]["messages"]] == ["system", "user"]


async def test_temperature_and_seed_are_sent_only_where_configured(serve: Serve) -> None:
    endpoint = Endpoint()
    client = await serve(endpoint)
    sampling = Sampling(temperature=0.5, seed="x")
    await ServedPolicy(client, "m").complete(PROMPT, sampling)
    for _ in range(2):
        await ServedPolicy(client, "m", sampled=True).complete(PROMPT, sampling)
    await ServedPolicy(client, "m", sampled=True).complete(PROMPT, Sampling(seed="y"))
    silent, one, same, other = endpoint.bodies
    assert not {"temperature", "seed"} & set(silent)
    assert one == same
    assert (one["temperature"], other["temperature"]) == (0.5, 0.0)
    assert one["seed"] != other["seed"]
    assert 0 <= one["seed"] < 2**31


async def test_the_tokens_written_are_limited_by_sampling_else_by_limits(serve: Serve) -> None:
    endpoint = Endpoint()
    policy = ServedPolicy(await serve(endpoint), "m", limits=Limits(max_tokens=9000))
    await policy.complete(PROMPT, Sampling())
    await policy.complete(PROMPT, Sampling(max_tokens=50))
    assert [body["max_tokens"] for body in endpoint.bodies] == [9000, 50]


async def test_further_keys_are_sent_as_they_are(serve: Serve) -> None:
    endpoint = Endpoint()
    policy = ServedPolicy(await serve(endpoint), "m", extra={"reasoning_effort": "low"})
    await policy.complete(PROMPT, Sampling())
    assert endpoint.bodies[0]["reasoning_effort"] == "low"


async def test_what_may_pass_is_asked_again(serve: Serve) -> None:
    endpoint = Endpoint(503, 429)
    completion = await ServedPolicy(await serve(endpoint), "m").complete(PROMPT, Sampling())
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
        await ServedPolicy(await serve(endpoint), "m").complete(PROMPT, Sampling())
    assert len(endpoint.bodies) == calls


async def test_no_retries_means_one_call(serve: Serve) -> None:
    endpoint = Endpoint(500)
    policy = ServedPolicy(await serve(endpoint), "m", limits=Limits(retries=0))
    with pytest.raises(WorkerError):
        await policy.complete(PROMPT, Sampling())
    assert len(endpoint.bodies) == 1
