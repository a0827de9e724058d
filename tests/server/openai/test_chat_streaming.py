from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from chat_model import Say, chat_model
from openai_client import client
from podium.store import TraceStore
from podium.workers.pool import Pool
from running_server import Serve

ASKED: list[Any] = [{"role": "user", "content": "What is 6 x 7?"}]


def events(url: str, **body: Any) -> Iterator[dict[str, Any]]:
    """What a stream says, event by event, as it comes."""
    sent = {"messages": ASKED, "stream": True} | body
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=sent, timeout=20) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line.removeprefix("data: "))


def test_the_pieces_of_a_stream_are_the_whole_answer(serve: Serve) -> None:
    asking = client(serve())
    whole = asking.chat.completions.create(model="podium", messages=ASKED, seed=3)
    chunks = list(asking.chat.completions.create(model="podium", messages=ASKED, seed=3, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]
    assert chunks[-1].podium["plan"] == whole.podium["plan"]
    assert len({chunk.id for chunk in chunks}) == 1


def test_stream_ends_with_usage_on_request(serve: Serve) -> None:
    chunks = list(
        client(serve()).chat.completions.create(
            model="podium", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens > 0
    assert chunks[-1].podium["trace_id"] == chunks[0].id.removeprefix("chatcmpl-")


def test_progress_comes_before_any_worker_has_answered(serve: Serve) -> None:
    free = threading.Event()
    with chat_model(lambda body: Say("42.", wait=lambda piece: free.is_set())) as model:
        url = serve(Pool([model.worker()]), planner="single:wren")
        told: list[dict[str, Any]] = []
        for event in events(url, model="podium"):
            told.append(event)
            if event.get("podium", {}).get("event") == "step_started":
                free.set()
    kinds = [event["podium"]["event"] for event in told if "event" in event.get("podium", {})]
    assert kinds == ["plan", "step_started", "step_ended", "round_ended"]
    lines = [event["choices"][0]["delta"].get("reasoning_content") for event in told]
    assert lines[1] == "Plan of 1 step: wren.\n"
    assert told[1]["podium"]["plan"][0]["worker"] == "wren"


def test_the_text_comes_piece_by_piece_as_the_worker_writes_it(serve: Serve) -> None:
    seen = 0

    with chat_model(lambda body: Say("Six| by| seven| is| 42.", wait=lambda piece: seen >= piece)) as model:
        for event in events(serve(Pool([model.worker()])), model="wren"):
            seen += bool(event["choices"][0]["delta"].get("content"))
    assert seen == 5
    assert model.bodies[0]["stream"] is True


def test_only_the_text_of_the_last_step_is_streamed(serve: Serve, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Say:
        return Say("The| end." if body.get("stream") else "A| beginning.")

    plan = 'model_id = [0, 0]\nsubtasks = ["Begin.", "End."]\naccess_list = [[], ["all"]]'
    (tmp_path / "plan.txt").write_text(plan)
    with chat_model(answer) as model:
        url = serve(Pool([model.worker()]), planner=f"constant:{tmp_path / 'plan.txt'}")
        contents = [event["choices"][0]["delta"].get("content") for event in events(url, model="podium")]
    assert [content for content in contents if content] == ["The", " end."]


def test_retry_that_repeats_the_sent_text_continues_the_stream(serve: Serve) -> None:
    tries: list[int] = []

    def answer(body: dict[str, Any]) -> Say:
        tries.append(1)
        return Say("Six| by| seven| is| 42.", break_after=2 if len(tries) == 1 else None)

    with chat_model(answer) as model:
        told = list(events(serve(Pool([model.worker()])), model="wren"))
    assert len(tries) == 2
    assert (
        "".join(event["choices"][0]["delta"].get("content") or "" for event in told) == "Six by seven is 42."
    )


def test_retry_with_a_different_text_ends_the_stream_with_an_error(serve: Serve) -> None:
    tries: list[int] = []

    def answer(body: dict[str, Any]) -> Say:
        tries.append(1)
        return Say("Six| by", break_after=1) if len(tries) == 1 else Say("42|.")

    with chat_model(answer) as model:
        url = serve(Pool([model.worker()]))
        with pytest.raises(openai.APIError) as broken:
            list(client(url).chat.completions.create(model="wren", messages=ASKED, stream=True))
    assert broken.value.type == "answer_changed"
    assert "differs from that text" in broken.value.message


def test_streamed_request_refused_before_planning_gets_a_plain_error(serve: Serve) -> None:
    asking = client(serve())
    with pytest.raises(openai.BadRequestError) as refused:
        asking.chat.completions.create(
            model="podium", messages=ASKED, stream=True, extra_body={"podium": {"deny": ["nobody"]}}
        )
    assert refused.value.param == "podium.deny"


def test_a_question_without_an_answer_is_an_error_that_names_workers(serve: Serve) -> None:
    with chat_model(lambda body: Say(status=400)) as model:
        url = serve(Pool([model.worker()]))
        with pytest.raises(openai.APIError) as broken:
            list(client(url).chat.completions.create(model="wren", messages=ASKED, stream=True))
    assert broken.value.type == "workers_failed"
    assert "wren" in broken.value.message
    assert len(broken.value.body["trace_id"]) == 32  # type: ignore[index]


def test_stream_disconnect_cancels_the_question_and_keeps_its_trace(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with chat_model(lambda body: Say("Six| by", wait=lambda piece: piece == 0)) as model:
        url = serve(Pool([model.worker()]), store=path)
        for event in events(url, model="wren"):
            if event["choices"][0]["delta"].get("content"):
                trace_id = event["id"].removeprefix("chatcmpl-")
                break
        end = time.monotonic() + 10
        while model.gone == 0 or serve.service(url).event_logs.running:
            assert time.monotonic() < end
            time.sleep(0.01)
    serve.stop(url)
    with TraceStore(path, create=False) as store:
        trace = store.get(trace_id)
    assert trace.status == "cancelled"
    assert trace.spans[0].status == "cancelled"
