"""Events of questions while they run and afterwards: real servers, and a model that waits for the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat_model import ChatModel, Say, chat_model
from podium.server.api import traces
from podium.trace import Trace
from podium.workers.pool import Pool
from running_server import Serve, until

Event = tuple[str, str, dict[str, Any]]


class Writer:
    """Decides how far the model has written. A first piece such as "The " would wait: thoughts may begin with it."""

    def __init__(self, text: str = "Six |sevens |are |42.") -> None:
        self.allowed = 0
        self.text = text

    def __call__(self, body: dict[str, Any]) -> Say:
        return Say(self.text, wait=lambda number: number < self.allowed)


def events(reply: httpx.Response) -> Iterator[Event]:
    """Id, kind and data of each event."""
    told: dict[str, str] = {}
    for line in reply.iter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            told[name] = value
        elif told:
            yield told["id"], told["event"], json.loads(told["data"])
            told = {}


def asked(url: str) -> str:
    reply = httpx.post(f"{url}/api/ask", json={"question": "What is 6 x 7?"})
    assert reply.status_code == 202, reply.text
    trace_id: str = reply.json()["id"]
    return trace_id


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def model(writer: Writer) -> Iterator[ChatModel]:
    with chat_model(writer) as opened:
        yield opened


@pytest.fixture
def url(serve: Serve, model: ChatModel, tmp_path: Path) -> str:
    pool = Pool([model.worker(stream=True)])
    return serve(pool, planner="single:wren", store=tmp_path / "traces.sqlite")


def test_a_reader_gets_every_event_as_it_happens(url: str, writer: Writer) -> None:
    trace_id = asked(url)
    with httpx.stream("GET", f"{url}/api/traces/{trace_id}/events", timeout=20) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        told = events(reply)
        _, kind, data = next(told)
        assert (kind, data["question"], data["planner"], data["workers"]) == (
            "started",
            "What is 6 x 7?",
            "single:wren",
            ["wren"],
        )
        _, kind, data = next(told)
        (step,) = data["plan"]["decision"]["steps"]
        assert (kind, data["fallback"], step["worker"]) == ("plan", None, 0)
        subtask = step["subtask"]
        started = {"round": 0, "position": 0, "worker": "wren", "subtask": subtask}
        assert next(told)[1:] == ("step_started", started)
        pieces = ""
        while pieces != "Six sevens are 42.":
            writer.allowed += 1
            _, kind, data = next(told)
            assert (kind, data["round"], data["position"], data["attempt"]) == ("text", 0, 0, 0)
            pieces += data["text"]
            assert pieces == "".join(writer.text.split("|")[: writer.allowed])
        _, kind, data = next(told)
        assert (kind, data["span"]["reply"]["text"]) == ("step_ended", "Six sevens are 42.")
        assert next(told)[1:] == (
            "round_ended",
            {"round": 0, "response": "Six sevens are 42."},
        )
        event_id, kind, data = next(told)
        assert (event_id, kind) == ("ended", "ended")
        assert Trace.model_validate(data["trace"]).id == trace_id
        assert list(told) == []


def test_a_stream_that_broke_goes_on_behind_any_of_its_events(url: str, writer: Writer) -> None:
    trace_id = asked(url)
    writer.allowed = 4
    address = f"{url}/api/traces/{trace_id}/events"
    with httpx.stream("GET", address, timeout=20) as reply:
        whole = list(events(reply))
    text = "".join(data["text"] for _, kind, data in whole if kind == "text")
    for number, (event_id, _, _) in enumerate(whole[:-1]):
        with httpx.stream("GET", address, headers={"last-event-id": event_id}, timeout=20) as reply:
            rest = list(events(reply))
        seen = "".join(data["text"] for _, kind, data in whole[: number + 1] if kind == "text")
        assert seen + "".join(data["text"] for _, kind, data in rest if kind == "text") == text
        others = [told for told in rest if told[1] != "text"]
        assert others == [told for told in whole[number + 1 :] if told[1] != "text"]
    assert httpx.get(address, headers={"last-event-id": "ended"}).status_code == 204
    for nonsense in ("x", "999", "1.x", "-7", "\xb2", "9" * 40):
        with httpx.stream(
            "GET", address, headers={"last-event-id": nonsense.encode("latin-1")}, timeout=20
        ) as reply:
            assert next(events(reply))[1] == "started"


def test_an_ended_question_gives_the_same_events_without_the_text(
    url: str, writer: Writer, serve: Serve
) -> None:
    trace_id = asked(url)
    writer.allowed = 4
    address = f"{url}/api/traces/{trace_id}/events"
    with httpx.stream("GET", address, timeout=20) as reply:
        live = [told[1:] for told in events(reply) if told[1] != "text"]
    until(lambda: trace_id not in serve.service(url).event_logs.running)
    serve.service(url).event_logs.forget(trace_id)
    with httpx.stream("GET", f"{url}/api/traces/{trace_id[:8]}/events", timeout=20) as reply:
        kept = [told[1:] for told in events(reply)]
    assert kept[0][1]["question"] == "What is 6 x 7?"
    assert kept[1:] == live[1:]
    with httpx.stream("GET", address, headers={"last-event-id": "1"}, timeout=20) as reply:
        assert [kind for _, kind, _ in events(reply)] == ["ended"]


def test_a_client_that_does_not_read_slows_no_question_and_is_dropped(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "_WRITE_TIMEOUT_S", 0.3)
    piece = "x" * 100_000
    with chat_model(lambda body: Say("|".join([piece] * 20))) as model:
        pool = Pool([model.worker(stream=True)])
        url = serve(pool, planner="single:wren", store=tmp_path / "traces.sqlite")
        service = serve.service(url)
        trace_id = asked(url)
        with httpx.stream("GET", f"{url}/api/traces/{trace_id}/events", timeout=20) as lazy:
            log = service.event_logs.find(trace_id, None)
            assert log is not None
            until(lambda: not service.event_logs.running)
            reply = httpx.get(f"{url}/api/traces/{trace_id}", timeout=60).json()
            assert len(reply["answer"]) == 20 * len(piece)
            until(lambda: not log._readers)
            with pytest.raises(httpx.RemoteProtocolError):
                lazy.read()
