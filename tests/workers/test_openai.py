"""The endpoint's client against a real server on loopback: what is sent, what is understood, what is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from traceback import format_exception
from typing import Any

import pytest
from aiohttp import web

from podium.errors import ConfigError, WorkerError
from podium.types import Limits, Message, Profile, Usage
from podium.workers import Pool, Request
from podium.workers.connections import Connections
from podium.workers.openai import ChatClient, OpenAIWorker

KEY = "sk-hush-hush-0123456789"
MESSAGES = (Message(role="user", content="What is 2 + 2?"),)
GOOD = {
    "choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
}


class Endpoint:
    """An endpoint that answers as it is told and remembers what it was asked."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.connections: set[object] = set()
        self.reply: Callable[[], web.StreamResponse] = lambda: web.json_response(GOOD)
        self.delay = 0.0
        self.asked = asyncio.Event()
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.asked.set()
        self.headers.append(request.headers)
        self.connections.add(request.transport)
        await asyncio.sleep(self.delay)
        return self.reply()

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.reply = lambda: web.Response(text=text, status=status, headers=named)


async def _started(endpoint: Endpoint) -> web.AppRunner:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    return runner


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    runner = await _started(endpoint)
    yield endpoint
    await runner.cleanup()


@pytest.fixture
async def client(endpoint: Endpoint) -> AsyncIterator[ChatClient]:
    client = ChatClient(endpoint.url, KEY)
    yield client
    await client.close()


async def _failure(client: ChatClient, timeout: float = 5.0) -> WorkerError:  # noqa: ASYNC109
    with pytest.raises(WorkerError) as caught:
        await client.chat(MESSAGES, model="m", timeout=timeout)
    assert KEY not in "".join(format_exception(caught.value))
    return caught.value


async def test_a_call_sends_what_it_was_given_and_nothing_else(
    endpoint: Endpoint, client: ChatClient
) -> None:
    reply = await client.chat(MESSAGES, model="m")
    assert reply.text == "4"
    assert reply.usage == Usage(input_tokens=12, output_tokens=3)
    await client.chat(
        MESSAGES, model="m", max_tokens=7, temperature=0.0, seed=3, extra={"top_p": 0.5, "seed": 4}
    )
    plain = {"model": "m", "messages": [{"role": "user", "content": "What is 2 + 2?"}]}
    full = plain | {"max_tokens": 7, "temperature": 0.0, "seed": 4, "top_p": 0.5}
    assert endpoint.bodies == [plain, full]
    assert [headers["Authorization"] for headers in endpoint.headers] == [f"Bearer {KEY}"] * 2


async def test_an_extra_name_for_the_token_limit_replaces_ours(
    endpoint: Endpoint, client: ChatClient
) -> None:
    await client.chat(MESSAGES, model="m", max_tokens=7, extra={"max_completion_tokens": 9})
    assert endpoint.bodies[0].get("max_tokens") is None
    assert endpoint.bodies[0]["max_completion_tokens"] == 9


async def test_without_a_key_no_key_is_sent(endpoint: Endpoint) -> None:
    client = ChatClient(endpoint.url + "/chat/completions/")
    await client.chat(MESSAGES, model="m")
    await client.close()
    assert "Authorization" not in endpoint.headers[0]


async def test_a_worker_puts_its_system_prompt_first_and_keeps_to_its_limits(endpoint: Endpoint) -> None:
    worker = OpenAIWorker(
        Profile(name="w"),
        ChatClient(endpoint.url, KEY),
        "m",
        limits=Limits(max_tokens=99),
        system="Be brief.",
        temperature=0.7,
        extra={"top_k": 1},
    )
    reply = await worker.answer(Request(MESSAGES, seed="0"))
    await worker.close()
    assert (reply.text, reply.latency_s) == ("4", None)
    assert endpoint.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert {key: endpoint.bodies[0][key] for key in ("max_tokens", "temperature", "top_k")} == {
        "max_tokens": 99,
        "temperature": 0.7,
        "top_k": 1,
    }
    assert KEY not in repr(worker) + repr(vars(worker)) + repr(vars(worker._client))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage(input_tokens=4, output_tokens=1, estimated=True)),
        ({"prompt_tokens": 12}, Usage(input_tokens=12, output_tokens=1, estimated=True)),
        (
            {"prompt_tokens": None, "completion_tokens": 3},
            Usage(input_tokens=4, output_tokens=3, estimated=True),
        ),
        (
            {"prompt_tokens": -1, "completion_tokens": "3"},
            Usage(input_tokens=4, output_tokens=1, estimated=True),
        ),
        ([], Usage(input_tokens=4, output_tokens=1, estimated=True)),
    ],
)
async def test_missing_usage_is_estimated_and_marked(
    endpoint: Endpoint, client: ChatClient, usage: object, expected: Usage
) -> None:
    endpoint.answer(GOOD | {"usage": usage})
    assert (await client.chat(MESSAGES, model="m")).usage == expected


async def test_content_in_parts_is_joined(endpoint: Endpoint, client: ChatClient) -> None:
    parts = [{"type": "text", "text": "Answer: "}, {"type": "text", "text": "4"}]
    endpoint.answer({"choices": [{"message": {"content": parts}}]})
    assert (await client.chat(MESSAGES, model="m")).text == "Answer: 4"


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, {"error": {"message": "No such parameter."}}, (False, "status 400: No such parameter.")),
        (
            401,
            {"error": {"message": f"Wrong key {KEY}."}},
            (False, "status 401: Wrong key *** (is the key right?)."),
        ),
        (
            404,
            {"detail": "Not Found"},
            (False, 'status 404: {"detail": "Not Found"} (are base_url and model right?).'),
        ),
        (408, "", (True, "status 408: (an empty body).")),
        (429, {"error": "slow down"}, (True, "status 429: slow down.")),
        (500, "<html>\n<b>oops</b>\n</html>", (True, "status 500: <html> <b>oops</b> </html>.")),
        (503, [1], (True, "status 503: [1].")),
        (529, "x" * 1000, (True, f"status 529: {'x' * 300}….")),
        (302, "moved", (False, "status 302: moved.")),
    ],
)
async def test_a_status_is_mapped_and_what_was_said_is_told(
    client: ChatClient, endpoint: Endpoint, status: int, body: object, told: tuple[bool, str]
) -> None:
    endpoint.answer(body, status)
    error = await _failure(client)
    assert error.kind == "status"
    assert (error.passing, str(error)) == (told[0], f"{endpoint.url}: {told[1]}")


async def test_a_key_that_straddles_the_cut_does_not_leak_its_first_half(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.answer("x" * 290 + KEY + "y" * 100, 500)
    assert KEY[:6] not in str(await _failure(client))


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7),
        ("0.5", 0.5, 0.5),
        (format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True), 3000, 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
    ],
    # A name that holds the time would differ between the processes that collect it.
    ids=["seconds", "part of a second", "in an hour", "long ago"],
)
async def test_retry_after_is_read_as_seconds_or_date(
    endpoint: Endpoint, client: ChatClient, header: str, low: float, high: float
) -> None:
    endpoint.answer({}, 429, Retry_After=header)
    after = (await _failure(client)).retry_after_s
    assert after is not None
    assert low <= after <= high


@pytest.mark.parametrize(("status", "header"), [(429, "soon"), (429, "7 s"), (400, "7")])
async def test_retry_after_that_says_nothing_usable_is_none(
    endpoint: Endpoint, client: ChatClient, status: int, header: str
) -> None:
    endpoint.answer({}, status, Retry_After=header)
    assert (await _failure(client)).retry_after_s is None


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (f"<html>{KEY}", "protocol", "the reply is not JSON: <html>*** (is base_url right?)"),
        ("", "protocol", "the reply is not JSON: (an empty body)"),
        ("[" * 100_000, "protocol", "the reply is not JSON"),
        ("[]", "protocol", "the reply has no choices"),
        ({"choices": []}, "protocol", "the reply has no choices"),
        ({"choices": [{"message": "4"}]}, "protocol", "the reply has no choices"),
        ({"choices": [{"message": {"content": None}}]}, "protocol", "the reply has no text"),
        (
            {"choices": [{"message": {"content": " "}, "finish_reason": "length"}]},
            "protocol",
            "it reached max_tokens before it wrote any answer; raise max_tokens",
        ),
        (
            {"choices": [{"message": {"content": None, "refusal": "I will not."}}]},
            "refused",
            "I will not.",
        ),
        (
            {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
            "refused",
            "it refused: content_filter",
        ),
        ({"error": {"code": 429, "message": "upstream"}}, "status", "status 429: upstream"),
        ({"error": "odd"}, "status", "odd"),
    ],
)
async def test_a_reply_without_a_text_is_an_error_that_says_why(
    endpoint: Endpoint, client: ChatClient, body: object, kind: str, said: str
) -> None:
    endpoint.answer(body)
    error = await _failure(client)
    assert error.kind == kind
    assert error.passing == ("429" in said)
    assert said in str(error)


async def test_an_endpoint_that_hangs_is_a_timeout(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.delay = 30.0
    error = await _failure(client, timeout=0.05)
    assert (error.kind, error.passing) == ("timeout", True)
    assert str(error) == f"{endpoint.url}: no reply within 0.05 s."


async def test_a_body_that_never_ends_is_a_timeout_too() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        await reader.read(-1)
        writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        client = ChatClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", KEY)
        assert (await _failure(client, timeout=0.05)).kind == "timeout"
        await client.close()


@pytest.mark.parametrize(
    ("wire", "kind", "passing"),
    [
        (b"", "connection", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", "connection", True),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "protocol", False),
    ],
)
async def test_a_connection_that_breaks_may_pass_and_another_protocol_does_not(
    wire: bytes, kind: str, passing: bool
) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(wire)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        client = ChatClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", KEY)
        error = await _failure(client)
        await client.close()
    assert (error.kind, error.passing) == (kind, passing)


async def test_a_refused_connection_may_pass(endpoint: Endpoint) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    client = ChatClient(f"http://127.0.0.1:{port}/v1", KEY)
    error = await _failure(client)
    await client.close()
    assert (error.kind, error.passing) == ("connection", True)
    assert f"http://127.0.0.1:{port}/v1: the connection failed" in str(error)


async def test_a_call_that_is_cancelled_ends_and_leaves_the_client_usable(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.delay = 30.0
    call = asyncio.create_task(client.chat(MESSAGES, model="m"))
    await endpoint.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    endpoint.delay = 0.0
    assert (await client.chat(MESSAGES, model="m")).text == "4"


async def test_the_workers_of_a_pool_share_their_connections(endpoint: Endpoint) -> None:
    shared = Connections()
    pool = Pool(
        [
            OpenAIWorker(Profile(name=name), ChatClient(endpoint.url, KEY, connections=shared), name)
            for name in ("a", "b")
        ]
    )
    for _ in range(3):
        for worker in pool:
            await worker.answer(Request(MESSAGES, seed="0"))
    assert len(endpoint.connections) == 1
    await pool.close()
    await pool.close()
    assert (await pool[0].answer(Request(MESSAGES, seed="0"))).text == "4"
    await pool.close()


@pytest.mark.filterwarnings("error")
def test_a_client_lives_through_several_event_loops_and_leaves_nothing_open() -> None:
    endpoint = Endpoint()
    shared = Connections()

    async def ask() -> str:
        runner = await _started(endpoint)
        client = ChatClient(endpoint.url, KEY, connections=shared)
        replies = await asyncio.gather(*(client.chat(MESSAGES, model="m") for _ in range(3)))
        await runner.cleanup()
        return replies[0].text

    assert [asyncio.run(ask()) for _ in range(3)] == ["4", "4", "4"]


@pytest.mark.parametrize("url", ["", "models.invalid", "ftp://x/v1", "http://", "http://[x", "http://x:port"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not an address such as"):
        ChatClient(url)


@pytest.mark.parametrize("url", ["https://me:hush@x/v1", "https://x/v1?key=hush", "htp://hush@[x"])
def test_an_address_with_a_secret_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ChatClient(url)
    assert "hush" not in str(caught.value)


async def test_openai_itself_is_asked_with_the_name_that_its_newer_models_know() -> None:
    assert ChatClient("https://api.openai.com/v1")._max_tokens_key == "max_completion_tokens"
