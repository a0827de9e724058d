"""The service gives what its session gives, to many clients at once, and refuses in the session's own words."""

import asyncio
import json
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podium.config import build
from podium.errors import (
    BudgetExceededError,
    ConfigError,
    GraderError,
    NoTasksError,
    RunMismatchError,
    ServiceError,
    StoreError,
    UsageError,
)
from podium.scoring import RolloutRequest, ScoringClient, ScoringSettings
from podium.scoring.protocol import ErrorReply
from podium.scoring.service import serve_session
from podium_testing import FaultServer
from scripted_session import ACCEPT, BROKEN, CHECKED, RIGHT, TASKS, UNREADABLE, WRONG, make_session

KEY = "s3cret"


def rollouts(*plans):
    return [
        RolloutRequest(task=task, group="0", rollout=number, plans=plan)
        for task in TASKS
        for number, plan in enumerate(plans)
    ]


async def test_over_http_everything_is_as_in_process():
    session = make_session(rounds=2, reward={"cost": 0.05})
    requests = rollouts((RIGHT,), (WRONG,), (UNREADABLE,), (BROKEN,), (CHECKED, ACCEPT), (WRONG, RIGHT))
    asked = rollouts((), (RIGHT,), (UNREADABLE,), (RIGHT, ACCEPT))
    async with serve_session(session) as url, ScoringClient(url, settings=session.settings) as client:
        assert await asyncio.gather(*map(client.score, requests)) == [
            await session.score(r) for r in requests
        ]
        assert await asyncio.gather(*map(client.prompt, asked)) == [await session.prompt(r) for r in asked]
        assert await client.info() == session.info
        assert session.info.tasks == tuple(TASKS)


async def test_a_wrong_key_is_refused_and_no_key_too():
    async with serve_session(make_session(), key=KEY) as url:
        for key in ("other", None):
            async with ScoringClient(url, key=key) as client:
                with pytest.raises(UsageError, match="refuses the key"):
                    await client.info()
        async with ScoringClient(url, key=KEY) as client:
            assert len((await client.info()).tasks) == 3


async def test_a_rank_with_other_settings_is_refused_by_their_names():
    ours = build({"max_steps": 4, "pool": "mine.toml"}, ScoringSettings)
    async with serve_session(make_session()) as url, ScoringClient(url, settings=ours) as client:
        with pytest.raises(ConfigError) as refused:
            await client.score(rollouts((RIGHT,))[0])
    said = str(refused.value)
    assert 'pool is "" there and "mine.toml" here; max_steps is 5 there and 4 here.' in said
    assert "the same configuration file" in said


async def test_scoring_service_on_a_public_host_requires_a_key():
    with pytest.raises(UsageError, match="give it a key"):
        async with serve_session(make_session(), host="0.0.0.0"):
            pass
    async with serve_session(make_session()) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"port {port}, cannot be listened on"):
            async with serve_session(make_session(), port=port):
                pass


@pytest.mark.parametrize(
    ("path", "headers", "body", "refusal"),
    [
        ("/score", {}, "{", (400, "This is no rollout to score")),
        ("/score", {}, json.dumps({"task": "sums/6", "groups": "0"}), (400, "group: Field required")),
        ("/score", {"Content-Type": "text/plain"}, "{}", (400, "Content-Type: application/json")),
        ("/scores", {}, "{}", (404, "/scores")),
        ("/health", {}, "{}", (405, "/health")),
        ("/score", {"Host": "evil.example"}, "{}", (421, "not at evil.example")),
    ],
)
async def test_a_request_that_cannot_be_read_is_refused(path, headers, body, refusal):
    async with serve_session(make_session()) as url, aiohttp.ClientSession() as session:
        sent = {"Content-Type": "application/json"} | headers
        async with session.post(url + path, data=body, headers=sent) as response:
            status, message = refusal
            assert response.status == status
            assert message in (await response.json())["message"]


async def test_a_bug_is_in_the_log_and_not_shown_to_the_client(caplog):
    async def broken(response, gold):
        raise ZeroDivisionError("deep inside")

    task = replace(TASKS["sums/6"], grader=broken)
    async with (
        serve_session(make_session({task.id: task})) as url,
        ScoringClient(url, patience_s=0.1) as client,
    ):
        with pytest.raises(ServiceError, match="has an internal error; its log says more") as told:
            await client.score(rollouts((RIGHT,))[0])
    assert "deep inside" not in str(told.value)
    assert "ZeroDivisionError: deep inside" in caplog.text


async def _page(request):
    return web.Response(text="<html>")


async def test_client_reports_an_address_that_is_not_a_scoring_service():
    async with FaultServer() as other, ScoringClient(other.url) as client:
        with pytest.raises(ServiceError, match="not a scoring service"):
            await client.info()
    site = web.Application()
    site.router.add_get("/health", _page)
    async with TestServer(site) as server, ScoringClient(str(server.make_url("/"))) as client:
        with pytest.raises(ServiceError, match="status 200"):
            await client.info()
    with pytest.raises(UsageError, match="no address"):
        ScoringClient("127.0.0.1:8500")


async def test_a_rollout_that_is_late_is_cancelled_and_requested_again(unused_tcp_port):
    cancelled, request, slow = [], rollouts((RIGHT,))[0], make_session(delay=600)
    async with ScoringClient(f"http://127.0.0.1:{unused_tcp_port}", patience_s=30) as client:
        async with serve_session(
            slow, port=unused_tcp_port, drain_s=0, on_cancelled=lambda: cancelled.append(1)
        ):
            asking = asyncio.create_task(client.score(request))
            while not slow.pool[0].requests:  # noqa: ASYNC110 - a scripted worker has no event for it
                await asyncio.sleep(0.001)
        async with serve_session(make_session(), port=unused_tcp_port):
            assert (await asking).reward == 1.0
    assert cancelled == [1]


async def test_a_request_to_a_service_that_is_away_for_a_moment_is_repeated(unused_tcp_port):
    requests = rollouts((RIGHT,), (WRONG,))
    async with ScoringClient(f"http://127.0.0.1:{unused_tcp_port}", patience_s=30) as client:
        asking = [asyncio.create_task(client.score(request)) for request in requests]
        await asyncio.sleep(0.2)
        async with serve_session(make_session(), port=unused_tcp_port):
            assert all(score.valid for score in await asyncio.gather(*asking))


async def test_a_service_that_stays_away_is_an_error(unused_tcp_port):
    async with ScoringClient(f"http://127.0.0.1:{unused_tcp_port}", patience_s=0.3) as client:
        with pytest.raises(ServiceError, match="cannot be reached"):
            await client.info()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BudgetExceededError("Spent."), BudgetExceededError),
        (ConfigError("No."), ConfigError),
        (NoTasksError("No."), ConfigError),
        (UsageError("No."), UsageError),
        (RunMismatchError("No."), UsageError),
        (StoreError("Full."), StoreError),
        (GraderError("No."), ServiceError),
    ],
)
def test_client_raises_the_same_or_nearest_error_type_of_the_service(error, kind):
    raised = ErrorReply.model_validate_json(ErrorReply.of(error).model_dump_json()).error
    assert type(raised) is kind
    assert str(raised) == str(error)
