from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from running_server import Serve
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from podium.testing import FaultServer, capable
from podium.types import Limits, Profile
from podium.workers.chat.client import ChatClient
from podium.workers.openai import OpenAIWorker
from podium.workers.pool import Pool


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    starting = Serve()
    with FaultServer(capable).in_thread() as endpoint:
        worker = OpenAIWorker(Profile(name="quill"), ChatClient(endpoint.url), "m", limits=Limits(retries=0))
        yield starting(Pool([worker]), planner="single:quill").replace("http", "ws") + "/v1/responses"
        starting.stop_all()


def ask(socket: ClientConnection, **fields: Any) -> dict[str, Any]:
    """The last event that answers a request."""
    socket.send(json.dumps({"type": "response.create", "model": "podium", **fields}))
    while True:
        event = json.loads(socket.recv(timeout=20))
        if event["type"] in ("response.completed", "response.failed", "error"):
            return event


def test_a_connection_answers_one_request_after_the_other(address: str) -> None:
    with connect(address) as socket:
        for word in ("first", "second"):
            event = ask(socket, input=f"Reply with exactly: {word}")
            [text] = [item for item in event["response"]["output"] if item["type"] == "message"]
            assert text["content"][0]["text"] == word


def test_what_is_not_stored_is_continued_on_its_own_connection_alone(address: str) -> None:
    with connect(address) as socket:
        first = ask(socket, input="Remember the code word: cobalt.", store=False)["response"]["id"]
        event = ask(socket, input="What is it?", previous_response_id=first, store=False)
        assert "cobalt" in json.dumps(event["response"]["output"])
        # A continuation that fails ends the chain.
        lost = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
        assert ask(socket, input=lost, previous_response_id=first)["type"] == "error"
        again = ask(socket, input="What is it?", previous_response_id=first)
        assert again["error"]["code"] == "previous_response_not_found"
    with connect(address) as socket:
        event = ask(socket, input="What is it?", previous_response_id=first)
        assert event["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("message", "param"),
    [("no JSON", None), ('{"type": "session.update"}', "type"), ('{"type": "response.create"}', "model")],
)
def test_a_message_that_is_no_request_is_an_error_and_the_connection_goes_on(
    address: str, message: str, param: str | None
) -> None:
    with connect(address) as socket:
        socket.send(message)
        event = json.loads(socket.recv(timeout=20))
        assert (event["type"], event["status"], event["error"]["param"]) == ("error", 400, param)
        assert ask(socket, input="Say only yes")["type"] == "response.completed"


def test_a_page_of_another_origin_cannot_connect(address: str) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(address, origin="https://evil.example"):  # type: ignore[arg-type]
        pass
    assert refused.value.response.status_code == 403
