"""Long bodies and endless heads on connections that are kept alive, at a `podium serve` of its own."""

import json
import re
import socket
from contextlib import contextmanager

import pytest
from openai import AsyncOpenAI

from podium_testing import FaultServer
from scripted_team import write_team
from served_process import pool_file, served

LONG = [140_000, 2_000_000]
"""Characters of a question: more than a head may have, and as many as a long context has."""
ENDLESS = 2**24
"""Bytes, of which a server that limits them takes but the first."""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Where it is."""
    folder = tmp_path_factory.mktemp("served")
    team = write_team(folder / "team.toml")
    with served(folder, "--team", str(team), "--planner", "single:ada") as server:
        yield server.url
        assert server.end() == (0, "")


def written(size, path="/v1/chat/completions", **headers):
    """A request with a body of about `size` bytes that is refused in words of its own, once it is read."""
    body = json.dumps({"model": "nobody", "messages": [{"role": "user", "content": "a" * size}]}).encode()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode()
        + body
    )


def chunked(size, trailers=b""):
    body = written(size).partition(b"\r\n\r\n")[2]
    pieces = [body[start : start + 5000] for start in range(0, len(body), 5000)]
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        + b"0\r\n"
        + trailers
        + b"\r\n"
    )


@contextmanager
def connected(url):
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        yield connection, connection.makefile("rb")


def reply(file):
    """Status and body of the next reply."""
    status = int(file.readline().split()[1])
    head = b"".join(iter(file.readline, b"\r\n"))
    return status, file.read(int(re.search(rb"content-length: (\d+)", head)[1]))


def code(file):
    status, body = reply(file)
    return status, json.loads(body)["error"]["code"]


@pytest.mark.parametrize("size", LONG)
@pytest.mark.parametrize("form", [written, chunked])
def test_long_bodies_can_follow_each_other_on_one_connection(url, size, form):
    with connected(url) as (connection, file):
        for _ in range(5):
            connection.sendall(form(size))
            assert code(file) == (404, "model_not_found")


@pytest.mark.parametrize("size", [10, *LONG])
def test_long_bodies_may_be_sent_before_the_reply_to_the_last(url, size):
    with connected(url) as (connection, file):
        connection.sendall(written(size) * 4)
        for _ in range(4):
            assert code(file) == (404, "model_not_found")


def test_a_long_body_needs_no_connection_that_is_kept(url):
    with connected(url) as (connection, file):
        connection.sendall(written(LONG[-1], Connection="close"))
        assert code(file) == (404, "model_not_found")
        assert file.read() == b""


def test_many_short_requests_in_one_packet_are_all_answered(url):
    with connected(url) as (connection, file):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2000)
        for _ in range(2000):
            assert reply(file)[0] == 200


ENDLESS_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "


@pytest.mark.parametrize(
    "begun",
    [
        ENDLESS_HEAD,
        b"GET /healthz?",
        b"\r\n",
        written(10) + ENDLESS_HEAD,
        written(140_000) + ENDLESS_HEAD,
        written(10) * 3 + ENDLESS_HEAD,
        chunked(10, trailers=b"X-Long: ")[:-2],
        chunked(140_000, trailers=b"X-Long: ")[:-2],
        chunked(10)[: -len(b"0\r\n\r\n")] + b"5;long=",
    ],
    ids=["head", "address", "nothing", "second", "long second", "fourth", "trailer", "long trailer", "chunk"],
)
def test_endless_request_is_cut_off(url, begun):
    more = b"\r\n" * 2048 if begun == b"\r\n" else b"a" * 4096
    with connected(url) as (connection, file):
        sent = 0
        try:
            connection.sendall(begun)
            while sent < ENDLESS:
                sent += connection.send(more)
        except OSError:
            pass
        assert sent < ENDLESS
    with connected(url) as (connection, file):
        connection.sendall(written(10))
        assert code(file) == (404, "model_not_found")


def test_a_second_head_that_is_long_and_ends_is_refused_in_words(url):
    with connected(url) as (connection, file):
        connection.sendall(written(10) + ENDLESS_HEAD + b"a" * 100_000 + b"\r\n\r\n")
        assert code(file) == (404, "model_not_found")
        assert code(file) == (431, "headers_too_large")


async def test_openais_client_sends_long_questions_over_one_connection(tmp_path):
    async with FaultServer("Done.") as worker:
        with served(tmp_path, "--pool", str(pool_file(tmp_path, worker.url))) as server:
            client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60)
            async with client:
                for size in LONG * 4:
                    told = await client.chat.completions.create(
                        model="ada", messages=[{"role": "user", "content": "a" * size}]
                    )
                    assert told.choices[0].message.content == "Done."
