"""`podium serve` in a process of its own: what it answers, and how it ends."""

import asyncio
import json
import signal

import httpx

from podium.store import TraceStore
from podium_testing import FaultServer, Rule, SlowFirstByte, Status
from scripted_team import write_team
from served_process import pool_file, served

TOGETHER = 20


def asked(text, **more):
    return {"model": "ada", "messages": [{"role": "user", "content": text}]} | more


async def not_ready(client):
    """What /readyz says once it says that it is not."""
    async with asyncio.timeout(10):
        while (said := await client.get("/readyz")).status_code == 200:
            pass
    return said


def traces(folder):
    with TraceStore(folder / "traces.sqlite", create=False) as store:
        return {trace.question.text: trace for trace in store.iterate()}


def test_a_team_answers_and_shows_its_page(tmp_path):
    team = write_team(tmp_path / "team.toml")
    with (
        served(tmp_path, "--team", str(team), "--planner", "single:ada") as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        question = {"model": "podium", "messages": [{"role": "user", "content": "What is 2 + 3?"}]}
        reply = client.post("/v1/chat/completions", json=question)
        assert reply.status_code == 200, reply.text
        page = client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert "<title>Podium" in page.text
        assert client.get("/readyz").json() == {"status": "ready"}
        status, err = server.end()
    assert (status, err) == (0, "")
    assert "no key is needed" in server.line
    (trace,) = traces(tmp_path).values()
    assert trace.id == reply.headers["x-podium-trace-id"]


async def test_requests_in_flight_at_shutdown_are_answered_or_cancelled(tmp_path):
    slow = Rule(contains="slow", fault=SlowFirstByte(seconds=80))
    soon = Rule(fault=SlowFirstByte(seconds=1.5))
    async with FaultServer("Done.", rules=[slow, soon]) as worker:
        pool = pool_file(tmp_path, worker.url)
        with served(tmp_path, "--pool", str(pool), "--planner", "single:ada", "--drain", "6") as server:
            limits = httpx.Limits(max_connections=100)
            async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:
                texts = [f"{'slow' if number % 2 else 'soon'} {number}" for number in range(TOGETHER)]
                asking = [
                    asyncio.create_task(client.post("/v1/chat/completions", json=asked(text)))
                    for text in texts
                ]
                await worker.wait_for_requests(TOGETHER)
                server.tell(signal.SIGTERM)
                unready = await not_ready(client)
                alive = await client.get("/healthz")
                refused = await client.post("/v1/chat/completions", json=asked("late"))
                replies = dict(zip(texts, await asyncio.gather(*asking), strict=True))
            status, err = await asyncio.to_thread(server.ended)
    assert "shutting down" in unready.json()["error"]["message"]
    assert alive.status_code == 200
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_ending")
    assert int(refused.headers["retry-after"]) > 0
    kept = traces(tmp_path)
    assert set(kept) == set(texts)
    for text, reply in replies.items():
        if text.startswith("soon"):
            assert (reply.status_code, kept[text].status) == (200, "ok")
        else:
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "server_ending")
            assert kept[text].status == "cancelled"
            assert [span.status for span in kept[text].spans] == ["cancelled"]
    assert status == 0
    assert err.count("\n") == 1
    assert "recorded as cancelled" in err


async def test_a_second_signal_does_not_wait(tmp_path):
    async with FaultServer("Done.", rules=[Rule(fault=SlowFirstByte(seconds=80))]) as worker:
        pool = pool_file(tmp_path, worker.url)
        # The planner that such a pool has by default asks the worker for a plan at the start, which `arrived` counts.
        with served(tmp_path, "--pool", str(pool), "--planner", "single:ada", "--drain", "70") as server:
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
                asking = asyncio.create_task(client.post("/v1/chat/completions", json=asked("slow")))
                await worker.wait_for_requests(1)
                server.tell(signal.SIGINT)
                await not_ready(client)
                assert not asking.done()
                server.tell(signal.SIGINT)
                async with asyncio.timeout(30):
                    reply = await asking
            status, _ = await asyncio.to_thread(server.ended)
    assert (status, reply.status_code) == (0, 503)
    assert traces(tmp_path)["slow"].status == "cancelled"


async def test_a_stream_that_is_cut_ends_with_the_reason(tmp_path):
    async with FaultServer("Done.", rules=[Rule(fault=SlowFirstByte(seconds=80))]) as worker:
        pool = pool_file(tmp_path, worker.url)
        with served(tmp_path, "--pool", str(pool), "--drain", "0") as server:
            async with (
                httpx.AsyncClient(base_url=server.url, timeout=60) as client,
                client.stream("POST", "/v1/chat/completions", json=asked("slow", stream=True)) as stream,
            ):
                told = []
                async for line in stream.aiter_lines():
                    if not told:
                        server.tell(signal.SIGTERM)
                    if line.startswith("data: "):
                        told.append(json.loads(line.removeprefix("data: ")))
            status, _ = await asyncio.to_thread(server.ended)
    assert (status, told[-1]["error"]["code"]) == (0, "server_ending")
    assert traces(tmp_path)["slow"].status == "cancelled"


def plan_or_answer(messages, body):
    """A plan for who is asked for one, else an answer."""
    if "Write your plan" in str(messages[-1]["content"]):
        return 'model_id = [0]\nsubtasks = ["Answer."]\naccess_list = [[]]'
    return "Goethe."


async def test_a_silent_conductor_is_reported_and_questions_are_still_answered(tmp_path):
    """At the start, at /readyz, in the reply; and once it answers, all is well again."""
    async with FaultServer(plan_or_answer, rules=[Rule(fault=Status(code=401), model="lead")]) as worker:
        pool = pool_file(tmp_path, worker.url)
        table = f'[conductor]\nbase_url = "{worker.url}"\nmodel = "lead"\n'
        pool.write_text(table + pool.read_text())
        with served(tmp_path, "--pool", str(pool)) as server:
            who = await asyncio.to_thread(server.process.stdout.readline)
            assert who.endswith(f" Planner: lead at {worker.url}, untrained.\n")
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as client, asyncio.timeout(20):
                while (ready := (await client.get("/readyz")).json())["status"] == "ready":
                    pass
                assert ready["status"] == "degraded"
                assert "One worker takes all questions." in ready["reason"]
                question = {"model": "podium", "messages": [{"role": "user", "content": "Who wrote Faust?"}]}
                reply = await client.post("/v1/chat/completions", json=question)
                assert reply.status_code == 200
                assert reply.json()["choices"][0]["message"]["content"] == "Goethe."
                assert reply.json()["podium"]["status"] == "degraded"
                assert "The question went to 'ada' alone." in reply.json()["podium"]["error"]
                worker.rules = []
                reply = await client.post("/v1/chat/completions", json=question)
                assert reply.json()["podium"]["status"] == "ok"
                assert reply.json()["podium"]["usage"]["conductor"]["unpriced"] is True
                assert (await client.get("/readyz")).json() == {"status": "ready"}
            status, err = server.end()
    assert status == 0
    assert "The Conductor does not answer, so questions go to 'ada' alone: " in err
