"""Streams that would be silent give signs of life, which no client takes for a part of the answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import openai_client
from chat_model import ChatModel, Say, chat_model
from chat_worker import ChatClient, chat_worker
from podium.server import streaming
from podium.types import Limits, Profile
from podium.workers.pool import Pool
from running_server import Serve

ASKED: list[Any] = [{"role": "user", "content": "What is 6 x 7?"}]
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": ASKED}),
    "message": ("/v1/messages", {"messages": ASKED, "max_tokens": 99}),
    "response": ("/v1/responses", {"input": "What is 6 x 7?"}),
    "background": ("/v1/responses", {"input": "What is 6 x 7?", "background": True}),
}


class Pauses:
    """Lets the model write once the reader has seen enough silence."""

    def __init__(self) -> None:
        self.over = False

    def say(self, body: dict[str, Any]) -> Say:
        return Say("It is |42.", wait=lambda number: self.over)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HEARTBEAT_S", 0.02)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def model(pauses: Pauses) -> Iterator[ChatModel]:
    with chat_model(pauses.say) as opened:
        yield opened


@pytest.fixture
def url(serve: Serve, model: ChatModel, tmp_path: Path) -> str:
    pool = Pool([model.worker(stream=True)])
    return serve(pool, planner="single:wren", store=tmp_path / "traces.sqlite")


def is_alive(line: str) -> bool:
    return line.startswith(":") or line == "event: ping"


@pytest.mark.parametrize("name", BODIES)
def test_a_model_that_thinks_leaves_no_stream_silent(url: str, pauses: Pauses, name: str) -> None:
    path, body = BODIES[name]
    seen = 0
    text = ""
    with httpx.stream(
        "POST", url + path, json={"model": "podium", "stream": True, **body}, timeout=20
    ) as reply:
        assert reply.status_code == 200
        for line in reply.iter_lines():
            seen += is_alive(line)
            pauses.over = seen >= 4
            text += line
    assert seen >= 4
    assert "42." in text


def test_a_plan_that_takes_long_leaves_no_stream_silent(serve: Serve) -> None:
    with chat_model(after(0.3)) as model:
        url = serve(Pool([model.worker(), model.worker("jay")]), planner="conductor:wren")
        body = {"model": "podium", "messages": ASKED, "stream": True}
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=20) as reply:
            lines = list(reply.iter_lines())
    first = next(number for number, line in enumerate(lines) if line.startswith("data:"))
    assert sum(map(is_alive, lines[:first])) >= 4
    assert lines[-2] == "data: [DONE]"


def test_event_stream_of_a_silent_question_gets_heartbeats(url: str, pauses: Pauses) -> None:
    trace_id = httpx.post(f"{url}/api/ask", json={"question": "What is 6 x 7?"}).json()["id"]
    seen = 0
    with httpx.stream("GET", f"{url}/api/traces/{trace_id}/events", timeout=20) as reply:
        for line in reply.iter_lines():
            seen += is_alive(line)
            pauses.over = seen >= 3
    assert seen >= 3


def after(seconds: float) -> Callable[[dict[str, Any]], Say]:
    """The model's answer, which begins so many seconds after it was asked."""

    def say(body: dict[str, Any]) -> Say:
        until = time.monotonic() + seconds
        return Say("It is |42.", wait=lambda _: time.monotonic() > until)

    return say


def test_openai_client_skips_heartbeats(serve: Serve) -> None:
    with chat_model(after(0.3)) as model:
        url = serve(Pool([model.worker(stream=True)]), planner="single:wren")
        client = openai_client.client(url)
        with client.chat.completions.stream(model="podium", messages=ASKED) as chat:
            assert chat.get_final_completion().choices[0].message.content == "It is 42."
        with client.responses.stream(model="podium", input="What is 6 x 7?") as response:
            numbers = [event.sequence_number for event in response]
            assert response.get_final_response().output_text == "It is 42."
        assert numbers == list(range(len(numbers)))


@pytest.mark.skipif(find_spec("anthropic") is None, reason="needs Anthropic's client")
def test_anthropic_client_skips_heartbeats(serve: Serve) -> None:
    from anthropic import Anthropic  # noqa: PLC0415

    with chat_model(after(0.3)) as model:
        url = serve(Pool([model.worker(stream=True)]), planner="single:wren")
        client = Anthropic(base_url=url, api_key="none", max_retries=0)
        with client.messages.stream(model="podium", max_tokens=99, messages=ASKED) as stream:
            assert "".join(stream.text_stream) == "It is 42."


def test_a_failure_after_a_sign_of_life_is_told_in_the_stream(serve: Serve, model: ChatModel) -> None:
    slow = chat_worker(
        Profile(name="wren"),
        ChatClient(model.url),
        "m",
        limits=Limits(timeout=0.3, retries=0, probe_after=0.05),
    )
    url = serve(Pool([slow]), planner="single:wren")
    for name in ("chat", "message", "response"):
        path, body = BODIES[name]
        sent = {"model": "wren", "stream": True, **body}
        with httpx.stream("POST", url + path, json=sent, timeout=20) as reply:
            assert reply.status_code == 200
            events = [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {")]
        last = events[-1]
        assert (last.get("error") or last["response"]["error"])["message"], name
    client = openai_client.client(url)
    with pytest.raises(openai.APIError, match="No worker could answer"):
        list(client.chat.completions.create(model="wren", messages=ASKED, stream=True))


@pytest.mark.parametrize(
    ("name", "kind"), [("chat", None), ("message", "error"), ("response", "response.failed")]
)
def test_a_silent_stream_that_takes_too_long_ends_with_an_error_of_its_api(
    serve: Serve, model: ChatModel, name: str, kind: str | None
) -> None:
    url = serve(Pool([model.worker()]), planner="single:wren", timeout=0.4)
    path, body = BODIES[name]
    with httpx.stream(
        "POST", url + path, json={"model": "wren", "stream": True, **body}, timeout=20
    ) as reply:
        events = [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {")]
    last = events[-1]
    assert "no answer within" in (last.get("error") or last["response"]["error"])["message"]
    assert last.get("type") == kind
