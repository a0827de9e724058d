"""The middleware around the routes, over real sockets."""

import json
import re
import socket
import time

import httpx
import pytest

from podium.server.body_limits import JsonShape
from podium.store.query import TraceFilters
from podium.team.team_file import open_pool
from podium_testing import FaultServer, Rule, SlowFirstByte

CHAT = "/v1/chat/completions"
CHUNK = b"200\r\n" + b" " * 512 + b"\r\n"
HELLO = {"model": "ada", "messages": [{"role": "user", "content": "Hello?"}]}


def raw(url, *parts, pause=0.0):
    """What a server answers to these bytes, whether it takes them all or not."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
        except OSError:
            pass
        said = b""
        while not whole(said) and (piece := connection.recv(65536)):
            said += piece
        return said


def whole(said):
    top, end, body = said.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", top)
    return bool(end) and length is not None and len(body) == int(length[1])


def head(url, method="POST", path=CHAT, **headers):
    host = url.removeprefix("http://")
    lines = {"Host": host, "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return (
        f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n"
    ).encode()


def refusal(said):
    """Status and error of a raw answer."""
    top, _, body = said.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(body)["error"]


@pytest.fixture
def ada(tmp_path):
    """`ada(url)` is a pool of one worker there."""

    def make(url):
        path = tmp_path / "pool.toml"
        path.write_text(f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n')
        return open_pool(path)

    return make


@pytest.mark.parametrize(
    ("settings", "length", "parts", "refused", "said"),
    [
        ({"body_bytes": 1000}, {"Content_Length": "1001"}, [], (413, "body_too_large"), "1000"),
        (
            {"body_bytes": 1000},
            {"Transfer_Encoding": "chunked"},
            [CHUNK] * 3,
            (413, "body_too_large"),
            "1000",
        ),
        ({"body_seconds": 0.3}, {"Content_Length": "100"}, [b"{"], (408, "body_too_slow"), "1 bytes"),
        ({"body_seconds": 0.5}, {"Content_Length": "100"}, [b" "] * 20, (408, "body_too_slow"), "bytes"),
    ],
    ids=["its head says that it is too large", "counted while it comes", "does not come", "drips"],
)
def test_a_body_that_is_too_large_or_slow_is_not_waited_for(  # noqa: PLR0917
    serve, settings, length, parts, refused, said
):
    url = serve(**settings)
    status, error = refusal(raw(url, head(url, **length), *parts, pause=0.05))
    assert (status, error["code"]) == refused
    assert error["type"] == ("invalid_request_error" if status == 413 else "timeout_error")
    assert said in error["message"]


def test_a_body_as_large_as_is_taken_is_read(serve):
    url = serve(body_bytes=1000)
    body = json.dumps({"model": "nobody", "messages": [{"role": "user", "content": "Hi"}]}).ljust(1000)
    assert httpx.post(url + CHAT, content=body).status_code == 404


def test_a_client_that_was_refused_reads_why_while_it_still_sends(serve):
    url = serve(body_bytes=1000)
    reply = httpx.post(url + CHAT, content=(b" " * 65536 for _ in range(100)))
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"[" * 100_000, "too_deep"),
        (b'{"messages": ' + b'{"a": [' * 40 + b"]}" * 40 + b"}", "too_deep"),
        (b'{"a": ' * 100_000, "too_deep"),
        (
            json.dumps({"model": "nobody", "messages": [{"role": "user", "content": "[{" * 5000}]}).encode(),
            None,
        ),
    ],
)
def test_json_that_is_too_deep_is_refused_before_it_is_parsed(serve, body, expected):
    error = httpx.post(serve() + CHAT, content=body).json()["error"]
    assert error["code"] == (expected or "model_not_found")


SHAPES = [
    ("1", 0, 0),
    ("[]", 1, 1),
    ("[[],[],[[]],{}]", 3, 9),
    ('{"a": [1, {"b": []}], "c": [[]]}', 4, 8),
    ('["[[[[[[", {"]": "}"}]', 2, 3),
    (r'["\"[[[", "\\", [[1]]]', 3, 5),
    (r'["\\\"[,\\", {"\\\\": "a\"]"}]', 2, 3),
    (json.dumps(["\\" * 7, '"' * 5, [['\\"']]]), 3, 5),
    # No JSON, and so no further than to where it is none; it may cost no more.
    ("[" * 40 + '"' + '\\"' * 20_001, 40, 40),
]
"""A text, its lists and objects within one another, their members."""


@pytest.mark.parametrize("size", [1, 2, 3, 7, 2**16])
@pytest.mark.parametrize(("text", "depth", "values"), SHAPES)
def test_json_shape_ignores_strings_and_splits(text, depth, values, size):
    shape = JsonShape()
    for start in range(0, len(text), size):
        shape.feed(text[start : start + size].encode())
    assert (shape.deepest, shape.values) == (depth, values)


def test_a_text_that_closes_more_than_it_opens_is_no_json():
    shape = JsonShape()
    shape.feed(b'["]]"]')
    assert shape.may_be_json
    shape.feed(b"]")
    shape.feed(b"[[[")
    assert (shape.may_be_json, shape.deepest) == (False, 1)


def test_headers_are_taken_up_to_a_size(serve):
    url, most = serve(), 32 * 2**10
    assert httpx.get(url + "/healthz", headers={"x-long": "a" * (most - 2000)}).status_code == 200
    reply = httpx.get(url + "/healthz", headers={"x-long": "a" * most})
    assert (reply.status_code, reply.json()["error"]["code"]) == (431, "headers_too_large")
    assert httpx.get(url + "/healthz?" + "a" * most).status_code == 431


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost:80@evil.example",
        "evil.example:80@localhost",
        "localhost:99999",
        "localhost/evil.example",
        "localhost#evil.example",
        "evil.example, localhost",
        "localhost..",
        "[::1].evil.example:80",
        "[::2]",
        "[localhost]",
        "",
    ],
)
def test_unknown_host_name_is_refused_by_a_server_without_keys(plain_url, name):
    reply = httpx.get(plain_url + "/v1/models", headers={"host": name})
    assert (reply.status_code, reply.json()["error"]["code"]) == (421, "unknown_host")


@pytest.mark.parametrize(
    "name",
    [
        "LOCALHOST:99",
        "localhost.",
        "localhost:",
        "127.8.9.1:80",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
    ],
)
def test_names_of_this_machine_are_answered(plain_url, name):
    assert httpx.get(plain_url + "/v1/models", headers={"host": name}).status_code == 200


def test_request_with_two_host_headers_is_refused(plain_url):
    host = plain_url.removeprefix("http://")
    said = raw(plain_url, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n".encode())
    assert int(said.split()[1]) == 400


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_pages_of_other_origins_may_not_ask(plain_url, origin):
    for method, path in (("POST", CHAT), ("POST", "/api/ask"), ("DELETE", "/api/ask/1")):
        reply = httpx.request(method, plain_url + path, headers={"origin": origin}, content=b"{}")
        assert (reply.status_code, reply.json()["error"]["type"]) == (403, "permission_error")
    reply = httpx.get(plain_url + "/v1/models", headers={"origin": origin})
    assert "access-control-allow-origin" not in reply.headers


def test_our_own_page_may_ask(plain_url):
    assert httpx.post(plain_url + CHAT, headers={"origin": plain_url}, content=b"{}").status_code == 400


def test_only_configured_origins_get_cors_headers(serve):
    url = serve()
    wanted = {"origin": "https://chat.example.com", "access-control-request-method": "POST"}
    assert httpx.options(url + CHAT, headers=wanted).status_code == 405
    named = serve(cors=("https://chat.example.com",))
    reply = httpx.options(
        named + CHAT, headers=wanted | {"access-control-request-headers": "authorization, x-stainless-os"}
    )
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == "https://chat.example.com"
    assert "authorization" in reply.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in reply.headers
    reply = httpx.post(named + CHAT, headers={"origin": "https://chat.example.com"}, content=b"{}")
    assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (
        400,
        "https://chat.example.com",
    )
    other = wanted | {"origin": "https://evil.example"}
    reply = httpx.options(named + CHAT, headers=other)
    assert reply.status_code == 400
    assert "access-control-allow-origin" not in reply.headers
    # A proxy that passes on the name by which that page knows the server.
    assert httpx.get(named + "/v1/models", headers={"host": "chat.example.com"}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/v1/models", "/nowhere", "/api/traces/1"])
def test_every_reply_has_browser_security_headers(plain_url, path):
    headers = httpx.get(plain_url + path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_the_viewer_keeps_its_own_headers(plain_url):
    headers = httpx.get(plain_url + "/").headers
    assert headers.get_list("content-security-policy") == [headers["content-security-policy"]]
    assert "script-src 'self'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-cache"


def test_an_api_may_be_without_its_viewer(serve):
    url = serve(viewer=False)
    assert httpx.get(url + "/").status_code == 405  # HEAD says that the server is there.
    assert httpx.get(url + "/v1/models").status_code == 200


async def test_question_over_the_time_limit_is_cancelled_with_request_timeout(serve, ada, tmp_path):
    async with FaultServer("Done.", rules=[Rule(fault=SlowFirstByte(seconds=60))]) as worker:
        url = serve(ada(worker.url), store=tmp_path / "traces.sqlite", timeout=0.5)
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            late = await client.post(CHAT, json=HELLO)
            told = []
            async with client.stream("POST", CHAT, json=HELLO | {"stream": True}) as stream:
                told = [line async for line in stream.aiter_lines() if line.startswith("data: ")]
            await worker.wait_until_idle()
        error = late.json()["error"]
        assert (late.status_code, error["type"], error["code"]) == (504, "timeout_error", "request_timeout")
        assert json.loads(told[-1].removeprefix("data: "))["error"]["code"] == "request_timeout"
        store = serve.service(url).store
        page = await store.to_thread(store.page, TraceFilters())
        assert [trace.status for trace in page.traces] == ["cancelled", "cancelled"]


def test_content_length_is_read_with_any_number_of_digits(serve):
    url = serve()
    digits = b"0" * 4_999 + b"2"
    for length, status in ((digits, b"400"), (b"9" * 15, b"413")):
        said = raw(
            url,
            b"POST "
            + CHAT.encode()
            + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: "
            + length
            + b"\r\n\r\n{}",
        )
        assert said.split(b" ")[1] == status, said
