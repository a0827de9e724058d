from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat_model import Say, chat_model
from podium.store import TraceStore
from podium.trace import Trace
from podium.workers.pool import Pool
from running_server import Serve, until


def kept(path: Path, trace_id: str) -> Trace:
    async def get() -> Trace:
        store = TraceStore(path)
        try:
            return store.get(trace_id)
        finally:
            store.close()

    return asyncio.run(get())


def test_a_question_goes_on_without_its_caller_and_is_kept(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    url = serve(store=path)
    reply = httpx.post(f"{url}/api/ask", json={"question": "What is 6 x 7?", "planner": "single:ada"})
    assert reply.status_code == 202
    until(lambda: not serve.service(url).event_logs.running)
    serve.stop(url)
    trace = kept(path, reply.json()["id"])
    assert trace.status == "ok"
    assert trace.planner == "single:ada"


def test_a_question_can_be_cancelled_and_its_trace_says_so(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with chat_model(lambda body: Say("Never.", wait=lambda piece: False)) as model:
        url = serve(Pool([model.worker()]), planner="single:wren", store=path)
        trace_id = httpx.post(f"{url}/api/ask", json={"question": "What is 6 x 7?"}).json()["id"]
        until(lambda: model.bodies)
        assert httpx.delete(f"{url}/api/ask/{trace_id}").status_code == 204
        until(lambda: not serve.service(url).event_logs.running)
        assert httpx.delete(f"{url}/api/ask/{trace_id}").status_code == 404
    serve.stop(url)
    assert kept(path, trace_id).status == "cancelled"


def test_questions_under_way_at_the_servers_end_are_recorded_as_cancelled(
    serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "traces.sqlite"
    with chat_model(lambda body: Say("Never.", wait=lambda piece: False)) as model:
        url = serve(Pool([model.worker()]), planner="single:wren", store=path)
        trace_id = httpx.post(f"{url}/api/ask", json={"question": "What is 6 x 7?"}).json()["id"]
        until(lambda: model.bodies)
        serve.stop(url)
    assert kept(path, trace_id).status == "cancelled"


def test_a_question_beyond_the_servers_time_limit_fails(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with chat_model(lambda body: Say("Never.", wait=lambda piece: False)) as model:
        url = serve(Pool([model.worker()]), planner="single:wren", store=path, timeout=2)
        trace_id = httpx.post(f"{url}/api/ask", json={"question": "What is 6 x 7?"}).json()["id"]
        until(lambda: model.gone)
        until(lambda: not serve.service(url).event_logs.running)
    serve.stop(url)
    trace = kept(path, trace_id)
    assert (trace.status, trace.answer) == ("failed", None)
    assert trace.error is not None
    assert "no answer within 2 s" in trace.error
    assert trace.spans[0].status == "cancelled", "what was begun, and may be billed, is kept"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "question"),
        ({"question": "  "}, 400, "question"),
        ({"question": "x", "allow": ["nobody"]}, 400, "allow"),
        ({"question": "x", "planner": "nobody"}, 404, "planner"),
        ({"question": "x", "budget": {"usd": -1}}, 400, "budget.usd"),
        ({"question": "x", "rounds": 99}, 400, "rounds"),
        ({"question": "x", "colour": "red"}, 400, "colour"),
    ],
)
def test_an_invalid_question_is_refused_with_its_field(
    serve: Serve, body: dict[str, Any], status: int, param: str
) -> None:
    reply = httpx.post(f"{serve(planner='single:ada')}/api/ask", json=body)
    assert reply.status_code == status
    assert reply.json()["error"]["param"] == param
