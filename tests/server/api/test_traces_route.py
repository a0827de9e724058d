"""/api/traces over real servers: who sees what, filters, pages, export, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from key_storage import KeyStorage
from podium.trace import Trace
from podium.trace.explanation import Explanation, explain_answer
from podium.trace.serialization import read_jsonl
from running_server import Serve

START = datetime(2026, 3, 1, tzinfo=UTC)


def ask(client: httpx.Client, text: str = "What is 6 x 7?") -> str:
    """The id of the trace of a question that was asked and answered."""
    body = {"model": "podium/single:ada", "messages": [{"role": "user", "content": text}]}
    reply = client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return reply.headers["x-podium-trace-id"]


@pytest.fixture
def client(serve: Serve, tmp_path: Path) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=serve(store=tmp_path / "traces.sqlite")) as opened:
        yield opened


def test_the_explanation_of_a_trace_is_that_of_the_library(client: httpx.Client) -> None:
    asked = ask(client)
    trace = Trace.model_validate(client.get(f"/api/traces/{asked}").json())
    reply = client.get(f"/api/traces/{asked[:10]}/explanation")
    assert (reply.status_code, Explanation.model_validate(reply.json())) == (200, explain_answer(trace))
    assert client.get("/api/traces/0123456789/explanation").status_code == 404


@pytest.fixture
def keep(serve: Serve, client: httpx.Client) -> Callable[..., Trace]:
    """`keep(number, **changes)`: a trace in the server's store, of the hour with that number."""
    first = ask(client)
    trace = Trace.model_validate(client.get(f"/api/traces/{first}").json())
    assert client.delete(f"/api/traces/{first}").status_code == 204
    store = serve.service(str(client.base_url).rstrip("/")).store
    assert store is not None

    def make(number: int, **changes: Any) -> Trace:
        moment = (START + timedelta(hours=number)).isoformat()
        one = trace.model_copy(update={"id": f"{number:032x}", "started_at": moment, **changes})
        store.add(one)
        return one

    return make


def listed(client: httpx.Client, **query: Any) -> list[int]:
    reply = client.get("/api/traces", params=query)
    assert reply.status_code == 200, reply.text
    return [int(row["id"], 16) for row in reply.json()["traces"]]


def refusal(reply: httpx.Response) -> tuple[int, str, str | None]:
    error = reply.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    return reply.status_code, error["type"], error["param"]


def test_answered_question_is_listed_and_readable_at_once(client: httpx.Client) -> None:
    trace_id = ask(client, "What is 20 + 22?")
    page = client.get("/api/traces").json()
    assert (page["total"], page["next"]) == (1, None)
    (row,) = page["traces"]
    trace = client.get(f"/api/traces/{trace_id[:8]}").json()
    assert Trace.model_validate(trace).id == trace_id
    assert row == {
        "id": trace_id,
        "started_at": trace["started_at"],
        "planner": "single:ada",
        "status": "ok",
        "question": "What is 20 + 22?",
        "calls": 1,
        "cost_usd": trace["rounds"][0]["spans"][0]["spent"]["cost_usd"],
        "seconds": trace["seconds"],
        "workers": ["ada"],
        "owner": None,
        "outcome": None,
        "unpriced": False,
    }


def test_trace_list_and_export_apply_filters_of_the_url(
    client: httpx.Client, keep: Callable[..., Trace]
) -> None:
    question = keep(1).question
    keep(2, status="failed")
    keep(3, planner="random", question=question.model_copy(update={"text": "Where is ÄSOP?"}))
    paid = keep(4).cost_usd
    assert listed(client) == [4, 3, 2, 1]
    assert listed(client, status="failed") == [2]
    assert listed(client, planner="random") == [3]
    assert listed(client, worker="ada") == [4, 3, 2, 1]
    assert listed(client, worker="bob") == []
    assert listed(client, q="äsop") == [3]
    assert listed(client, since="2026-03-01T02:00:00Z", until="2026-03-01T04:00:00+00:00") == [3, 2]
    assert listed(client, since="2026-03-01T02:00:00") == [4, 3, 2]
    assert listed(client, min_cost=paid, max_cost=paid) == [4, 3, 2, 1]
    assert listed(client, min_cost=2 * paid + 1) == []
    export = client.get("/api/traces/export", params={"planner": "single:ada"})
    assert export.headers["content-type"].startswith("application/jsonl")
    assert [int(trace.id, 16) for trace in read_jsonl(export.text.splitlines(), "export")] == [1, 2, 4]


def test_pages_cover_all_traces(client: httpx.Client, keep: Callable[..., Trace]) -> None:
    for number in range(25):
        keep(number)
    found: list[int] = []
    query: dict[str, Any] = {"limit": 10}
    totals = []
    while True:
        page = client.get("/api/traces", params=query).json()
        found += [int(row["id"], 16) for row in page["traces"]]
        totals.append(page["total"])
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert found == list(reversed(range(25)))
    assert totals == [25, None, None]


def test_a_large_export_comes_whole(client: httpx.Client, keep: Callable[..., Trace]) -> None:
    traces = [keep(number) for number in range(300)]
    with client.stream("GET", "/api/traces/export") as reply:
        assert list(read_jsonl(reply.iter_lines(), "export")) == traces
    assert client.get("/api/traces/export", params={"q": "nothing has this"}).content == b""


@pytest.mark.parametrize(
    ("path", "status", "param"),
    [
        ("/api/traces?limit=0", 422, "limit"),
        ("/api/traces?limit=201", 422, "limit"),
        ("/api/traces?limit=x", 422, "limit"),
        ("/api/traces?cursor=x", 400, "cursor"),
        ("/api/traces?since=yesterday", 422, "since"),
        ("/api/traces?status=fine", 422, "status"),
        ("/api/traces?min_cost=-1", 422, "min_cost"),
        ("/api/traces?max_cost=nan", 422, "max_cost"),
        ("/api/traces?state=failed", 422, "state"),
        ("/api/traces/export?limit=3", 422, "limit"),
        ("/api/traces/" + "0" * 32, 404, "id"),
        ("/api/traces/%00", 404, "id"),
        ("/api/traces/" + "0" * 32 + "/events", 404, "id"),
    ],
)
def test_invalid_trace_request_is_refused_with_its_field(
    plain_url: str, path: str, status: int, param: str
) -> None:
    code, kind, named = refusal(httpx.get(plain_url + path))
    assert (code, named) == (status, param)
    assert kind == ("not_found_error" if status == 404 else "invalid_request_error")


def test_ambiguous_trace_id_is_refused_and_deletion_needs_the_whole_id(
    client: httpx.Client, keep: Callable[..., Trace]
) -> None:
    keep(1), keep(2)
    assert refusal(client.get("/api/traces/0")) == (400, "invalid_request_error", "id")
    assert refusal(client.delete("/api/traces/" + "0" * 31)) == (404, "not_found_error", "id")
    assert client.delete(f"/api/traces/{1:032x}").status_code == 204
    assert refusal(client.delete(f"/api/traces/{1:032x}")) == (404, "not_found_error", "id")
    assert listed(client) == [2]


@contextmanager
def keyed(serve: Serve, folder: Path) -> Iterator[Callable[[str], httpx.Client]]:
    """Clients with the keys of ada, bob, and an admin."""
    storage = KeyStorage(str(folder / "traces.sqlite"))
    keys = {name: storage.add(name, admin=name == "root") for name in ("ada", "bob", "root")}
    url = serve(keys=storage.keys(), store=folder / "traces.sqlite")
    opened = {
        name: httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"})
        for name, key in keys.items()
    }
    try:
        yield opened.__getitem__
    finally:
        for client in opened.values():
            client.close()


def test_a_key_sees_its_own_traces_alone_and_an_admins_key_all(serve: Serve, tmp_path: Path) -> None:
    with keyed(serve, tmp_path) as client:
        first, second = ask(client("ada")), ask(client("bob"))
        assert [row["id"] for row in client("ada").get("/api/traces").json()["traces"]] == [first]
        assert client("ada").get("/api/traces").json()["total"] == 1
        assert {row["owner"] for row in client("root").get("/api/traces").json()["traces"]} == {"ada", "bob"}
        exported = client("bob").get("/api/traces/export").text.splitlines()
        assert [json.loads(line)["id"] for line in exported] == [second]
        for path in (f"/api/traces/{second}", f"/api/traces/{second[:6]}", f"/api/traces/{second}/events"):
            mine, no_ones = client("ada").get(path), client("ada").get(path.replace(second[:6], "ffffff"))
            assert mine.status_code == no_ones.status_code == 404
            assert mine.text.replace(second[:6], "ffffff") == no_ones.text, (
                "no more than of one that never was"
            )
            assert client("bob").get(path).status_code == client("root").get(path).status_code == 200
        assert client("ada").delete(f"/api/traces/{second}").status_code == 404
        assert client("root").delete(f"/api/traces/{second}").status_code == 204
        assert client("bob").get("/api/traces").json()["total"] == 0
        nobody = httpx.get(str(client("ada").base_url.join("/api/traces")))
        assert refusal(nobody)[:2] == (401, "authentication_error")


def test_a_trace_that_is_damaged_has_an_error_of_its_own(client: httpx.Client, tmp_path: Path) -> None:
    asked = ask(client)
    assert client.get(f"/api/traces/{asked}").status_code == 200
    with closing(sqlite3.connect(tmp_path / "traces.sqlite", isolation_level=None)) as file:
        file.execute("UPDATE podium_documents SET document = '{}'")
    for path in (f"/api/traces/{asked}", f"/api/traces/{asked}/explanation"):
        refused = client.get(path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "damaged_trace")
