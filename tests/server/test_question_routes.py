"""The routes that are called without FastAPI's router: they answer, fail and are counted as all others."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import FrameType

import fastapi
import httpx
import pytest
import starlette

import podium
from running_server import Serve

COUNTED = tuple(str(Path(module.__file__ or "").parent) for module in (podium, fastapi, starlette))
MOST_CALLS = 690
"""Podium's, FastAPI's and Starlette's function calls for a question of one step, to a worker in the same process."""
BODIES = {
    "/v1/chat/completions": {"model": "podium", "messages": [{"role": "user", "content": "Add 17 to 25."}]},
    "/v1/responses": {"model": "podium", "input": "Add 17 to 25."},
    "/v1/messages": {
        "model": "podium",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Add 17 to 25."}],
    },
}


@pytest.mark.parametrize("path", BODIES)
def test_a_question_is_answered_refused_and_counted_under_its_route(serve: Serve, path: str) -> None:
    url = serve(planner="single:ada")
    good = httpx.post(f"{url}{path}", json=BODIES[path], timeout=60)
    assert (good.status_code, good.headers["x-frame-options"]) == (200, "DENY")
    bad = httpx.post(f"{url}{path}", json={**BODIES[path], "model": "nobody"})
    assert bad.status_code == 404
    assert "nobody" in bad.json()["error"]["message"]
    assert httpx.get(f"{url}{path}").status_code == 405
    counted = httpx.get(f"{url}/metrics").text
    for status in (200, 404):
        row = f'podium_http_requests_total{{method="POST",route="{path}",status="{status}"}} 1.0'
        assert row in counted


def test_each_request_has_an_id_of_its_own(serve: Serve) -> None:
    url = serve(planner="single:ada")
    ids = [httpx.get(f"{url}/healthz").headers["x-request-id"] for _ in range(3)]
    assert len(set(ids)) == 3


def test_question_through_the_server_stays_within_its_recorded_work(
    serve: Serve,
) -> None:
    done = 0

    def count(frame: FrameType, event: str, value: object) -> None:
        nonlocal done
        done += event == "call" and frame.f_code.co_filename.startswith(COUNTED)

    threading.setprofile(count)  # For the threads that begin from here on: the server's.
    try:
        url = serve(planner="single:ada")
    finally:
        threading.setprofile(None)
    path, works = "/v1/chat/completions", []
    for _ in range(6):
        before = done
        assert httpx.post(f"{url}{path}", json=BODIES[path], timeout=60).status_code == 200
        time.sleep(0.2)
        works.append(done - before)
    assert MOST_CALLS / 2 < min(works) <= MOST_CALLS
