"""Approve before paying, over real servers: a plan is priced, edited, run once or rejected, by its own caller alone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from approving_team import PLAN, TEXT_PLANS, approving_team, is_planning
from chat_model import ChatModel, Say, chat_model
from key_storage import KeyStorage
from podium.executor.plan_estimate import ASSUMED_TOKENS
from podium.server import approval
from podium.server.keys.caller import KeyAllowance
from podium.store import TraceStore
from podium.workers.pool import Pool
from podium.workflow import Access, Step, Workflow, render
from running_server import Serve, until

ASKED = [{"role": "user", "content": "What is 6 x 7?"}]
EDITED = render(Workflow((Step(1, "Multiply twice."), Step(0, "Decide.", Access(steps=(0,))))))


@pytest.fixture
def team(serve: Serve, tmp_path: Path) -> Iterator[tuple[ChatModel, httpx.Client]]:
    """An endpoint, and a client of a server whose team it is."""
    with approving_team() as (model, pool):
        url = serve(pool, conductor=TEXT_PLANS, store=tmp_path / "traces.sqlite")
        with httpx.Client(base_url=url, timeout=30) as client:
            yield model, client
        serve.stop_all()


def chat(client: httpx.Client, **podium: Any) -> httpx.Response:
    return client.post("/v1/chat/completions", json={"model": "podium", "messages": ASKED, "podium": podium})


def plan(client: httpx.Client, **podium: Any) -> dict[str, Any]:
    """The object `podium` of a dry run."""
    reply = chat(client, dry_run=True, **podium)
    assert reply.status_code == 200, reply.text
    return reply.json()["podium"]


def trace_of(client: httpx.Client, id_: str) -> dict[str, Any]:
    return client.get(f"/api/traces/{id_}").json()


def test_a_plan_that_is_run_by_its_id_is_paid_for_once(team: tuple[ChatModel, httpx.Client]) -> None:
    model, client = team
    planned = chat(client, dry_run=True).json()
    podium = planned["podium"]
    assert planned["choices"][0]["message"]["content"] == PLAN
    assert [(step["worker"], step["reads"]) for step in podium["plan"]] == [("wren", []), ("lark", [0])]
    assert podium["workers"] == ["wren", "lark"]
    waiting = trace_of(client, podium["plan_id"])
    planning_usd = waiting["rounds"][0]["plan"]["spent"]["cost_usd"]
    assert podium["cost_usd"] == planning_usd > 0
    assert (waiting["status"], waiting["answer"], len(model.bodies)) == ("planned", None, 1)
    answered = chat(client, plan_id=podium["plan_id"])
    assert answered.json()["choices"][0]["message"]["content"] == "42."
    trace = trace_of(client, podium["plan_id"])
    (round_,) = trace["rounds"]
    steps_usd = sum(span["spent"]["cost_usd"] for span in round_["spans"])
    assert answered.json()["podium"]["cost_usd"] == pytest.approx(planning_usd + steps_usd)
    assert (trace["status"], trace["planner"], round_["plan"]["edited"]) == ("ok", waiting["planner"], False)
    assert round_["plan"] == waiting["rounds"][0]["plan"]
    assert client.get("/api/traces").json()["total"] == 1
    assert [is_planning(body) for body in model.bodies] == [True, False, False]
    again = chat(client, plan_id=podium["plan_id"])
    assert (again.status_code, again.json()["error"]["code"]) == (404, "plan_not_found")
    assert len(model.bodies) == 3


def test_an_edited_plan_runs_as_edited_and_the_trace_keeps_both(
    team: tuple[ChatModel, httpx.Client],
) -> None:
    model, client = team
    id_ = plan(client)["plan_id"]
    reply = chat(client, dry_run=True, plan_id=id_, workflow=EDITED)
    priced = reply.json()
    assert (reply.headers["x-podium-cost-usd"], priced["usage"]["total_tokens"]) == ("0.000000", 0)
    assert priced["choices"][0]["message"]["content"] == EDITED
    assert [step["worker"] for step in priced["podium"]["estimate"]["steps"]] == ["lark", "wren"]
    assert chat(client, plan_id=id_, workflow=EDITED).status_code == 200
    (round_,) = trace_of(client, id_)["rounds"]
    assert (round_["plan"]["text"], round_["plan"]["edited"]) == (PLAN, True)
    assert [(span["worker"], span["subtask"], span["reads"]) for span in round_["spans"]] == [
        ("lark", "Multiply twice.", []),
        ("wren", "Decide.", [0]),
    ]
    assert "Multiply twice." in model.bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("workflow", "said"),
    [
        (EDITED.replace("[1, 0]", "[1, 2]"), "Expected a worker of the pool (0 to 1) for step 1, found 2."),
        (
            EDITED.replace("[[], [0]]", "[[1], [0]]"),
            "Expected step 0 to read nothing, as the first of all, found 1, a later step: steps count from 0.",
        ),
        (EDITED.replace("Multiply twice.", " "), "Expected a subtask for step 0, found an empty text."),
        ("Ask lark.", "Expected the lists model_id, subtasks and access_list, found none of them."),
    ],
)
def test_invalid_plan_edit_is_refused_with_its_step(
    team: tuple[ChatModel, httpx.Client], workflow: str, said: str
) -> None:
    model, client = team
    id_ = plan(client)["plan_id"]
    for podium in ({"dry_run": True}, {}):
        refused = chat(client, plan_id=id_, workflow=workflow, **podium)
        error = refused.json()["error"]
        assert (refused.status_code, error["param"], error["code"]) == (
            400,
            "podium.workflow",
            "invalid_plan",
        )
        assert error["message"] == said
    assert len(model.bodies) == 1
    assert chat(client, plan_id=id_).status_code == 200


def test_a_rejected_plan_costs_its_planning_and_is_gone(team: tuple[ChatModel, httpx.Client]) -> None:
    model, client = team
    planned = plan(client)
    id_ = planned["plan_id"]
    assert client.delete(f"/api/ask/{id_}").status_code == 204
    trace = trace_of(client, id_)
    assert (trace["status"], trace["error"]) == ("cancelled", "The plan was rejected.")
    assert client.get("/api/traces").json()["traces"][0]["cost_usd"] == planned["cost_usd"]
    assert client.delete(f"/api/ask/{id_}").status_code == chat(client, plan_id=id_).status_code == 404
    assert len(model.bodies) == 1


def test_each_route_runs_a_plan(team: tuple[ChatModel, httpx.Client]) -> None:
    _, client = team
    bodies: dict[str, dict[str, Any]] = {
        "/v1/responses": {"input": "What is 6 x 7?"},
        "/v1/messages": {"messages": ASKED, "max_tokens": 100},
        "/v1/chat/completions": {"messages": ASKED, "stream": True},
    }
    for route, body in bodies.items():
        id_ = plan(client)["plan_id"]
        reply = client.post(route, json={"model": "podium", **body, "podium": {"plan_id": id_}})
        assert reply.status_code == 200, reply.text
        assert trace_of(client, id_)["answer"] == "42."
    asked = client.post("/api/ask", json={"question": "What is 6 x 7?", "dry_run": True})
    assert (asked.status_code, asked.json()["text"]) == (200, PLAN)
    id_ = asked.json()["id"]
    begun = client.post("/api/ask", json={"plan_id": id_, "workflow": EDITED})
    assert (begun.status_code, begun.json()) == (202, {"id": id_})
    assert client.get(f"/api/traces/{id_}/events").text.count("event: step_ended") == 2
    again = client.post("/api/ask", json={"plan_id": id_})
    assert (again.status_code, again.json()["error"]["param"]) == (404, "plan_id")


def test_invalid_plan_approval_is_refused_with_a_remedy(team: tuple[ChatModel, httpx.Client]) -> None:
    model, client = team
    id_ = plan(client)["plan_id"]
    other = [{"role": "user", "content": "What is 6 x 8?"}]
    for body, param, said in [
        ({"messages": other, "podium": {"plan_id": id_}}, "podium.plan_id", "is for another question"),
        ({"model": "wren", "podium": {"plan_id": id_}}, "podium.plan_id", "leave podium.plan_id out"),
        ({"podium": {"workflow": PLAN}}, "podium.workflow", "name the plan by podium.plan_id"),
        ({"podium": {"plan_id": id_, "deny": ["lark"]}}, "podium.workflow", "Step 1 of the plan needs"),
    ]:
        refused = client.post("/v1/chat/completions", json={"model": "podium", "messages": ASKED, **body})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
        assert said in refused.json()["error"]["message"]
    assert len(model.bodies) == 1


def test_step_estimate_uses_past_answers_or_states_its_assumption(
    team: tuple[ChatModel, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = team
    estimate = plan(client)["estimate"]
    low, likely, high = estimate["cost_usd"].values()
    assert likely == pytest.approx(sum(step["cost_usd"]["likely"] for step in estimate["steps"]))
    assert 0 < low < likely < high <= estimate["most_usd"]
    assumed = f"an assumed {ASSUMED_TOKENS} tokens, at $1 and $2 per million input and output tokens"
    assert [step["source"] for step in estimate["steps"]] == [assumed, assumed]
    for _ in range(5):
        client.post("/v1/chat/completions", json={"model": "wren", "messages": ASKED})
    monkeypatch.setattr("podium.server.recent_traces._FRESH_S", 0.0)
    first, second = plan(client)["estimate"]["steps"]
    assert first["source"].startswith("5 past answers, at $1")
    assert first["cost_usd"]["low"] == first["cost_usd"]["high"] < second["cost_usd"]["likely"]
    assert second["source"] == assumed


def test_a_plan_expires(team: tuple[ChatModel, httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = team
    podium = plan(client)
    left = datetime.fromisoformat(podium["expires_at"]) - datetime.now(UTC)
    assert 3500 < left.total_seconds() <= 3600
    monkeypatch.setattr(approval, "PLAN_LIFETIME_S", 0.0)
    assert chat(client, plan_id=podium["plan_id"]).status_code == 404
    assert trace_of(client, podium["plan_id"])["status"] == "planned"


def test_plan_without_a_trace_waits_in_memory(serve: Serve, tmp_path: Path) -> None:
    with approving_team() as (_, pool), httpx.Client(base_url=serve(pool, conductor=TEXT_PLANS)) as client:
        id_ = plan(client)["plan_id"]
        assert chat(client, plan_id=id_).status_code == 200
        assert chat(client, plan_id=id_).status_code == 404
        assert client.delete(f"/api/ask/{plan(client)['plan_id']}").status_code == 204
    with (
        approving_team() as (_, pool),
        httpx.Client(base_url=serve(pool, conductor=TEXT_PLANS, store=tmp_path / "t.sqlite")) as client,
    ):
        body = {"model": "podium", "messages": ASKED, "store": False, "podium": {"dry_run": True}}
        id_ = client.post("/v1/chat/completions", json=body).json()["podium"]["plan_id"]
        assert client.get("/api/traces").json()["total"] == 0
        assert chat(client, plan_id=id_).status_code == 200


def test_a_plan_is_given_and_runs_while_the_store_cannot_be_used(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with approving_team() as (_, pool), TraceStore(path, max_characters=0) as full:
        url = serve(pool, conductor=TEXT_PLANS, store=full)
        with closing(sqlite3.connect(path)) as file:
            file.execute("ALTER TABLE podium_documents RENAME TO away")
        with httpx.Client(base_url=url, timeout=30) as client:
            assert client.get("/api/traces/0123456789").status_code == 503
            waiting = plan(client)
            assert waiting["estimate"]["cost_usd"]["likely"] > 0
            assert chat(client, plan_id=waiting["plan_id"]).status_code == 200
        serve.stop_all()


def test_plan_approved_several_times_on_replicas_runs_once(serve: Serve, tmp_path: Path) -> None:
    with approving_team() as (model, pool):
        urls = [serve(pool, conductor=TEXT_PLANS, store=tmp_path / "traces.sqlite") for _ in range(2)]
        clients = [httpx.Client(base_url=url, timeout=30) for url in urls]
        id_ = plan(clients[0])["plan_id"]
        with ThreadPoolExecutor(8) as threads:
            replies = list(threads.map(lambda n: chat(clients[n % 2], plan_id=id_), range(8)))
        assert sorted(reply.status_code for reply in replies) == [200, *[404] * 7]
        assert len(model.bodies) == 3
        # Its server alone is sure to have the trace at once.
        ran = [reply.status_code for reply in replies].index(200)
        assert trace_of(clients[ran % 2], id_)["status"] == "ok"
        for client in clients:
            client.close()
        serve.stop_all()


def test_a_key_runs_its_own_plans_alone_within_its_budget(serve: Serve, tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    key, caller = asyncio.run(storage.added("ada", budget="1/day"))
    with approving_team() as (_, pool):
        url = serve(pool, conductor=TEXT_PLANS, keys=storage.keys(), store=tmp_path / "traces.sqlite")
        ada, root = (
            httpx.Client(base_url=url, headers={"authorization": f"Bearer {text}"})
            for text in (key, storage.add("root", admin=True))
        )
        id_ = plan(ada)["plan_id"]
        assert chat(root, plan_id=id_).status_code == 404
        assert root.delete(f"/api/ask/{id_}").status_code == 404
        cost_usd = chat(ada, plan_id=id_).json()["podium"]["cost_usd"]
        ada.close(), root.close()
        serve.stop_all()
    today = KeyAllowance.read("1/day").period(datetime.now(UTC))
    spending = asyncio.run(storage.open().spending(caller.id or "", today))
    assert spending.spent == pytest.approx(cost_usd * 1e9)


def test_planning_cost_counts_in_the_budget_of_the_run(team: tuple[ChatModel, httpx.Client]) -> None:
    model, client = team
    id_ = plan(client, budget={"tokens": 20_000})["plan_id"]
    # The limit of the dry run holds, and planning has taken some of it.
    assert chat(client, plan_id=id_, budget={"calls": 1}).json()["podium"]["status"] == "degraded"
    trace = trace_of(client, id_)
    assert (trace["budget"]["tokens"], trace["budget"]["calls"], trace["budget"]["rounds"]) == (20_000, 1, 1)
    planned = plan(client)
    refused = chat(client, plan_id=planned["plan_id"], budget={"usd": planned["cost_usd"]})
    assert (refused.status_code, refused.json()["error"]["type"]) == (402, "budget_exceeded")
    assert f"${0:.6f} of the budget's" in refused.json()["error"]["message"]
    assert len(model.bodies) == 3


def test_dry_run_without_a_plan_fails_and_keeps_its_cost(serve: Serve, tmp_path: Path) -> None:
    with chat_model("I would rather not.") as model:
        url = serve(Pool([model.worker()]), store=tmp_path / "traces.sqlite")
        with httpx.Client(base_url=url) as client:
            failed = chat(client, dry_run=True)
            assert (failed.status_code, failed.json()["error"]["type"]) == (502, "planner_failed")
            (trace,) = client.get("/api/traces").json()["traces"]
            assert trace["status"] == "failed"
            assert trace["cost_usd"] > 0


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/ask"])
def test_cancelled_dry_run_keeps_a_trace_of_what_planning_cost(
    serve: Serve, tmp_path: Path, path: str
) -> None:
    bodies = {
        "/v1/chat/completions": {"model": "podium", "messages": ASKED, "podium": {"dry_run": True}},
        "/api/ask": {"question": "What is 6 x 7?", "dry_run": True},
    }
    with chat_model(lambda body: Say("Never.", wait=lambda piece: False)) as model:
        url = serve(Pool([model.worker()]), conductor=TEXT_PLANS, store=tmp_path / "traces.sqlite")
        with pytest.raises(httpx.TimeoutException):
            httpx.post(url + path, json=bodies[path], timeout=httpx.Timeout(30, read=0.5))
        until(lambda: model.gone)
        (trace,) = until(lambda: httpx.get(f"{url}/api/traces").json()["traces"])
        assert (trace["status"], trace["cost_usd"] > 0) == ("cancelled", True)
        assert 'podium_questions_total{planner="conductor:wren",status="cancelled"} 1.0' in metrics(url)
        serve.stop_all()


def test_metrics_count_planning_once_for_a_plan_that_is_run_later(
    team: tuple[ChatModel, httpx.Client],
) -> None:
    _, client = team
    planned = plan(client)
    counted = f"podium_planning_cost_usd_total {planned['cost_usd']}"
    seen = metrics(str(client.base_url))
    assert counted in seen
    assert not any(row.startswith("podium_questions_total{") for row in seen)
    assert chat(client, plan_id=planned["plan_id"]).status_code == 200
    seen = metrics(str(client.base_url))
    assert counted in seen
    assert 'podium_questions_total{planner="conductor:wren",status="ok"} 1.0' in seen


def metrics(url: str) -> list[str]:
    return httpx.get(f"{url.rstrip('/')}/metrics").text.splitlines()
