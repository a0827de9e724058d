"""Hostile bodies are refused at little cost to the server; ordinary long ones are accepted."""

import socket
import struct
import time
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from hostile_bodies import ASK, CHAT, HELLO, HOSTILE, RESPONSES, chat, text, tool
from podium.server.api.ask import AskBody
from podium.server.openai.chat_body import ChatBody
from podium.server.openai.responses_body import ResponseBody
from scripted_team import write_team
from served_process import served
from tiny_policy import write_policy

MORE_KIB = 400 * 2**10
"""Memory that one body of up to 20 MiB may take at its peak; a list of {} of 5.7 MiB took 3.7 GB once."""
SECONDS = 15
"""A generous bound: one that went on to the last fault took 18 s, and all other requests waited for it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    policy, team = write_policy(folder / "policy"), write_team(folder / "team.toml")
    with served(folder, "--team", str(team), "--conductor", str(policy)) as running:
        yield running
        assert running.end() == (0, "")


def kib(process, name):
    """A line of what the system knows of a process' memory."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_a_hostile_body_is_refused_in_a_sentence_at_little_cost(server, hostile):
    body = hostile.body()
    assert len(body) <= 20 * 2**20
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # The peak begins anew.
    before, began = kib(server.process, "VmRSS"), time.monotonic()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        reply = client.post(hostile.path, content=body)
        error = reply.json()["error"]
        assert (400 <= reply.status_code < 500, error["code"] or "") == (True, hostile.code), error
        assert len(error["message"]) < 700
        assert len(error["param"] or "") <= 200
        assert "\n" not in error["message"]
        assert client.get("/healthz").status_code == 200
    assert time.monotonic() - began < SECONDS
    assert kib(server.process, "VmHWM") - before < MORE_KIB


LISTS = [hostile for hostile in HOSTILE if hostile.name in ("empty messages", "empty items", "workers")]


@pytest.mark.parametrize("hostile", LISTS, ids=lambda hostile: hostile.name)
def test_list_validation_stops_early(hostile):
    model = {CHAT: ChatBody, RESPONSES: ResponseBody, ASK: AskBody}[hostile.path]
    with pytest.raises(ValidationError) as refused:
        model.model_validate_json(hostile.body())
    assert refused.value.error_count() < 10


def test_a_long_conversation_with_many_tools_stays_within_the_values_taken(server):
    # As many messages as OpenAI takes, with parts, and as many tools, of some 20 fields each.
    fields = {f"field {number}": {"type": "string", "description": "What it is."} for number in range(20)}
    tools = [tool({"type": "object", "properties": fields, "required": []}) for _ in range(128)]
    body = chat(*[text("a" * 1000)] * 2048, tools=tools)
    error = httpx.post(server.url + CHAT, content=body, timeout=60).json()["error"]
    assert error["code"] == "model_not_found"


@pytest.mark.parametrize("count", [2048, 2049])
def test_too_many_messages_are_refused_with_the_limit(server, count):
    error = httpx.post(server.url + CHAT, content=chat(*[HELLO] * count)).json()["error"]
    if count == 2048:
        assert error["code"] == "model_not_found"
    else:
        assert (error["param"], error["message"]) == (
            "messages",
            "messages: it should have at most 2048 items, not 2049.",
        )


def test_the_values_of_a_body_are_counted_while_it_comes(server):
    # The rest does not come.
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        connection.sendall(head.encode() + b'{"messages": [' + b"{}, " * 20_000)
        said = b""
        while b"}}" not in said:
            said += connection.recv(65536)
    assert b"too_many_values" in said
    assert b" 30000 values" in said


@pytest.mark.parametrize("sent", [b"", b'{"messages": ['])
@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
def test_a_client_that_leaves_within_its_body_is_no_error_of_ours(server, sent, reset):
    # The fixture `server` asserts that nothing is logged.
    host, port = server.url.removeprefix("http://").split(":")
    for path in (CHAT, RESPONSES, ASK):
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
            connection.sendall(head.encode() + sent)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    counted = httpx.get(server.url + "/metrics").text
    assert 'status="5' not in counted


@pytest.mark.parametrize(
    ("path", "fields", "said"),
    [
        (
            RESPONSES,
            {"input": [{"type": "web"}]},
            "input.0: 'type' should be one of 'message', 'function_call'",
        ),
        (RESPONSES, {"input": "a", "tool_choice": {}}, "The field 'tool_choice.type' is missing."),
        (CHAT, {"messages": [{"role": "user", "content": "a"}], "tool_choice": 3}, "tool_choice: "),
    ],
)
def test_a_refusal_names_fields_of_the_request_and_nothing_of_our_code(server, path, fields, said):
    error = httpx.post(server.url + path, json={"model": "podium"} | fields).json()["error"]
    assert error["message"].startswith(said)
    assert "()" not in error["message"]
    assert "[" not in error["message"]
