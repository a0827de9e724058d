"""The metrics that Prometheus reads, and the health checks."""

import asyncio
import sqlite3
from contextlib import closing

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from key_storage import KeyStorage
from podium.errors import WorkerError
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter
from podium.team.team_file import open_pool
from podium.types import Price, Profile, Spent, Usage
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workers.scripted import ScriptedWorker
from podium.workers.spec import ReplaySpec
from podium_testing import FaultServer, Rule, SlowFirstByte, Status
from running_server import until

CHAT = "/v1/chat/completions"


def asked(text, model="ada"):
    return {"model": model, "messages": [{"role": "user", "content": text}]}


def figures(text):
    """Value by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def pool(tmp_path):
    """`pool(url, ...)` has the worker ada there, and bob who fails at once."""

    def make(url, dead="http://127.0.0.1:1/v1"):
        path = tmp_path / "pool.toml"
        path.write_text(
            f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
            "price = { input = 1.0, output = 2.0 }\nlimits = { retries = 1, failures_to_open = 2 }\n"
            f'[[worker]]\nname = "bob"\nkind = "openai"\nmodel = "m"\nbase_url = "{dead}"\n'
            "limits = { retries = 0, failures_to_open = 1 }\n"
        )
        return open_pool(path)

    return make


async def test_metrics_count_finished_requests_and_calls(serve, pool):
    again = Rule(contains="again", fault=Status(code=500), times=1)
    async with FaultServer("Done.", rules=[again]) as worker:
        url = serve(pool(worker.url))
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert (await client.post(CHAT, json=asked("Hello?"))).status_code == 200
            assert (await client.post(CHAT, json=asked("And again?"))).status_code == 200
            assert (await client.post(CHAT, json=asked("Hello?", "bob"))).status_code == 502
            assert (await client.post(CHAT, json=asked("Hello?", "nobody"))).status_code == 404
            stopped = asked("Hello?") | {"podium": {"budget": {"usd": 0.0000001}}}
            assert (await client.post(CHAT, json=stopped)).status_code == 402
            assert (await client.get("/made/up/7")).status_code == 404
            read = await client.get("/metrics")
            while figures(read.text)["podium_traces_waiting",]:  # They are written beside the answers.
                await asyncio.sleep(0.05)
                read = await client.get("/metrics")
    assert read.headers["content-type"].startswith("text/plain")
    seen = figures(read.text)
    assert seen["podium_questions_total", "ok", "single:ada"] == 2
    assert seen["podium_questions_total", "failed", "single:bob"] == 1
    assert seen["podium_question_seconds_count", "single:ada"] == 3
    assert seen["podium_worker_attempts_total", "ada"] == 3
    assert seen["podium_worker_failures_total", "ada"] == 1
    assert seen["podium_worker_retries_total", "ada"] == 1
    assert seen["podium_worker_hedges_total", "ada"] == 0
    assert seen["podium_worker_breaker_state", "ada"] == 0
    assert seen["podium_worker_breaker_state", "bob"] == 2
    assert seen["podium_worker_in_flight", "ada"] == 0
    assert seen["podium_worker_waiting", "ada"] == 0
    tokens = {way: seen["podium_tokens_total", *sorted((way, "ada"))] for way in ("input", "output")}
    assert min(tokens.values()) > 0
    assert seen["podium_cost_usd_total", "ada"] == pytest.approx(
        (tokens["input"] * 1.0 + tokens["output"] * 2.0) / 1e6
    )
    assert seen["podium_budget_refusals_total", "ada"] == 1
    assert seen["podium_http_requests_total", *sorted(("POST", CHAT, "200"))] == 2
    assert seen["podium_http_requests_total", *sorted(("POST", CHAT, "404"))] == 1
    assert seen["podium_http_requests_total", *sorted(("other", "other", "404"))] == 1
    assert seen["podium_questions_in_flight",] == 0
    assert seen["podium_traces_waiting",] == 0
    assert seen["process_resident_memory_bytes",] > 0


def test_what_a_failed_attempt_took_counts_for_the_attempted_worker(serve):
    broken = WorkerError("It broke off.", kind="status")
    lost = Spent(Usage(input_tokens=500, output_tokens=10), 0.5)
    bob = Profile(name="bob", price=Price(output=1e6))
    url = serve(
        Pool(
            [
                ScriptedWorker("ada", [broken], failures_spend=lost, fallback="bob"),
                ScriptedWorker("bob", ["42"], profile=bob),
            ]
        )
    )
    used = httpx.post(url + CHAT, json=asked("Hello?")).json()["podium"]["usage"]["workers"]
    assert [used[name]["cost_usd"] for name in ("ada", "bob")] == [0.5, 1.0]
    assert [used[name]["output_tokens"] for name in ("ada", "bob")] == [10, 1]
    seen = figures(httpx.get(url + "/metrics").text)
    assert [seen["podium_cost_usd_total", name] for name in ("ada", "bob")] == [0.5, 1.0]
    assert [seen["podium_tokens_total", *sorted(("output", name))] for name in ("ada", "bob")] == [10, 1]


async def test_metrics_show_requests_and_calls_in_flight(serve, pool):
    async with FaultServer("Done.", rules=[Rule(fault=SlowFirstByte(seconds=60))]) as worker:
        url = serve(pool(worker.url))
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            asking = [asyncio.create_task(client.post(CHAT, json=asked(f"{n}"))) for n in range(3)]
            await worker.wait_for_requests(3)
            seen = figures((await client.get("/metrics")).text)
            assert seen["podium_questions_in_flight",] == 3
            assert seen["podium_worker_in_flight", "ada"] == 3
            assert seen["podium_http_requests_in_flight",] == 4
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


def test_two_applications_count_apart(serve):
    one, other = serve(), serve()
    httpx.get(one + "/healthz")
    seen = [figures(httpx.get(url + "/metrics").text) for url in (one, other)]
    asked_for = ("podium_http_requests_total", "/healthz", "200", "GET")
    key = (asked_for[0], *sorted(asked_for[1:]))
    assert (seen[0][key], key in seen[1]) == (1, False)


async def test_metrics_need_an_admin_key_when_keys_are_required(serve, tmp_path):
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    keys = {name: (await storage.added(name, admin=name == "admin"))[0] for name in ("admin", "plain")}
    url = serve(keys=storage.keys())
    sent = {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}
    sent |= {"wrong": {"authorization": "Bearer pk-wrong"}, "none": {}}
    async with httpx.AsyncClient(base_url=url) as client:
        said = {
            name: (await client.get("/metrics", headers=headers)).status_code
            for name, headers in sent.items()
        }
        open_to_all = [(await client.get(path)).status_code for path in ("/healthz", "/readyz")]
        # Where keys are needed, a proxy may call the server what it likes.
        named = await client.get("/v1/models", headers={"host": "podium.example.com"} | sent["plain"])
    assert said == {"admin": 200, "plain": 403, "wrong": 401, "none": 401}
    assert open_to_all == [200, 200]
    assert named.status_code == 200


def test_health_route_answers_head_requests(serve):
    url = serve()
    assert httpx.head(url + "/healthz").status_code == 200
    assert httpx.get(url + "/healthz").json() == {"status": "ok"}
    assert httpx.get(url + "/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize("tools", ["", '[[worker]]\nname = "vote"\nkind = "vote"\n'])
async def test_server_is_not_ready_while_all_models_are_in_cooldown(serve, tmp_path, tools):
    path = tmp_path / "pool.toml"
    path.write_text(
        '[[worker]]\nname = "bob"\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'
        "limits = { retries = 0, failures_to_open = 1 }\n" + tools
    )
    url = serve(open_pool(path))
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.post(CHAT, json=asked("Hello?", "bob"))).status_code == 502
        unready = await client.get("/readyz")
        assert (await client.get("/healthz")).status_code == 200
    assert (unready.status_code, unready.json()["error"]["code"]) == (503, "not_ready")
    assert "cooldown" in unready.json()["error"]["message"]


def test_a_server_that_cannot_keep_traces_is_not_ready(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("podium.files.sqlite.BUSY_TIMEOUT_S", 0.001)
    url = serve(store=tmp_path / "db-7.sqlite")
    store = serve.service(url).store
    with closing(sqlite3.connect(store.name, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert httpx.post(url + CHAT, json=asked("Is 1 odd?")).status_code == 200
        until(lambda: store.write_problem is not None)
        unready = httpx.get(url + "/readyz")
        assert unready.status_code == 503
        assert "db-7" not in unready.text
        assert figures(httpx.get(url + "/metrics").text)["podium_traces_waiting",] == 1
        other.execute("ROLLBACK")
    until(lambda: store.write_problem is None)


def test_recorded_answers_cost_nothing_that_is_paid(serve, tmp_path):
    with RecordingWriter() as writer:
        writer.add_question(RecordedQuestion("q", "Is 1 odd?", "yes", None, "test"))
        writer.add("q", RecordedResponse("ada", 0, "Answer: yes", score=1.0, output_tokens=3))
        writer.write(tmp_path / "r.parquet", name="r")
    recording = Recording.open(tmp_path / "r.parquet")
    ada = ReplaySpec(name="ada", price=Price(output=1e6), recording=recording.path)
    url = serve(Pool([ReplayWorker(ada, recording)]))
    assert httpx.post(url + CHAT, json=asked("Is 1 odd?")).json()["podium"]["cost_usd"] >= 3
    assert figures(httpx.get(url + "/metrics").text)["podium_cost_usd_total", "ada"] == 0
