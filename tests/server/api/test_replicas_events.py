"""Several servers on one PostgreSQL: a server that does not run a question sends its events once it is stored."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx

from chat_model import Say, chat_model
from podium.server.api import traces
from podium.store import TraceStore
from podium.workers.pool import Pool
from running_server import Serve


def read(url: str) -> list[tuple[str, dict[str, object]]]:
    with httpx.stream("GET", url, timeout=60) as reply:
        assert reply.status_code == 200
        lines = [line.partition(": ") for line in reply.iter_lines()]
    kinds = [value for name, _, value in lines if name == "event"]
    return list(zip(kinds, (json.loads(value) for name, _, value in lines if name == "data"), strict=True))


def test_question_of_one_replica_can_be_followed_at_another(
    serve: Serve, postgres_url: str, tmp_path: Path
) -> None:
    go_on = threading.Event()
    stores = [TraceStore(postgres_url), TraceStore(postgres_url)]
    with chat_model(lambda body: Say("42.", wait=lambda number: go_on.is_set())) as model:
        one, other = (serve(Pool([model.worker()]), planner="single:wren", store=store) for store in stores)
        trace_id = httpx.post(f"{one}/api/ask", json={"question": "What is 6 x 7?"}).json()["id"]
        threading.Timer(0.5, go_on.set).start()
        told = read(f"{other}/api/traces/{trace_id}/events")
        assert [kind for kind, _ in told] == [
            "started",
            "plan",
            "step_started",
            "step_ended",
            "round_ended",
            "ended",
        ]
        assert told[-1][1]["trace"] == httpx.get(f"{one}/api/traces/{trace_id[:10]}").json()
        assert httpx.delete(f"{other}/api/traces/{trace_id}").status_code == 204
        assert httpx.get(f"{one}/api/traces/{trace_id}").status_code == 404
        serve.stop_all()
    for store in stores:
        store.close()


def test_event_stream_of_an_unknown_trace_ends_after_its_wait(
    serve: Serve, postgres_url: str, monkeypatch
) -> None:
    monkeypatch.setattr(traces, "_MAX_WAIT_S", 0.2)
    store = TraceStore(postgres_url)
    url = serve(store=store)
    assert read(f"{url}/api/traces/{'0' * 32}/events") == []
    assert httpx.get(f"{url}/api/traces/0000/events").status_code == 404
    serve.stop_all()
    store.close()
