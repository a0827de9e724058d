"""Calls of the kind litellm through its real library, to a server on loopback that fails in every way.

Not collected with the other tests, since the library pins others' versions: `runs/litellm.sh` makes a place for both.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.errors import WorkerError
from podium.team.team_file import open_pool
from podium.types import AnswerOptions, Limits, Message, Usage
from podium.workers import Request
from podium.workers.litellm import LiteLLMWorker
from podium.workers.redaction import Secrets
from podium.workers.spec import LiteLLMSpec
from podium_testing import (
    Answer,
    EchoHeaders,
    FaultServer,
    Hang,
    HangUp,
    RateLimited,
    Redirect,
    RefusedParameters,
    Reset,
    Rule,
    SlowDrip,
    SlowFirstByte,
    Status,
    StrictTemplate,
    TruncatedJson,
)
from podium_testing.exchange import Fault
from podium_testing.faults.malformed import DeepJson, InvalidUtf8, Verbatim, WrongContentType
from podium_testing.faults.wrong_content import (
    ContentFilter,
    EmptyChoices,
    ErrorInside,
    MissingUsage,
    NullContent,
    WrongModel,
)

HELLO = Request((Message(role="user", content="Two and two?"),), seed="s")
SECRET = "sk-hush-hush-1234567890"


@pytest.fixture(autouse=True)
def _loopback_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever wants to tell others something is found out."""
    elsewhere: list[Any] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            elsewhere.append(address)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    yield
    assert elsewhere == []


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer("It is 4.", keys=[SECRET]) as running:
        yield running


def worker_of(server: FaultServer, **settings: Any) -> LiteLLMWorker:
    secrets = Secrets()
    secrets.add(SECRET)
    key = settings.pop("key", SECRET)
    given = {"model": "openai/m", "limits": Limits(timeout=60.0), **settings}
    spec = LiteLLMSpec(name="m", kind="litellm", base_url=server.url, **given)
    return LiteLLMWorker(spec, secrets, key)


async def failed(worker: LiteLLMWorker) -> WorkerError:
    try:
        with pytest.raises(WorkerError) as caught:
            await worker.answer(HELLO)
    finally:
        await worker.close()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


async def test_a_call_is_one_request_and_its_answer_a_reply(server: FaultServer) -> None:
    worker = worker_of(server, system="Be brief.", temperature=0.5, extra={"top_p": 0.25})
    reply = await worker.answer(HELLO)
    assert (reply.text, reply.finish, reply.model, reply.cost_usd) == ("It is 4.", "stop", "m", None)
    assert not reply.usage.estimated
    (request,) = server.requests
    assert [message["content"] for message in request.body["messages"]] == ["Be brief.", "Two and two?"]
    assert (request.body["temperature"], request.body["top_p"]) == (0.5, 0.25)
    await worker.close()
    await worker.close()
    assert (await worker.answer(HELLO)).text == "It is 4."  # A later call opens new connections.
    await worker.close()


async def test_closing_one_worker_leaves_the_calls_of_another_alone() -> None:
    async with FaultServer("4", rules=[Rule(fault=SlowFirstByte(seconds=1), after=1)]) as server:
        one, other = worker_of(server), worker_of(server)
        await one.answer(HELLO)
        call = asyncio.create_task(other.answer(HELLO))
        while not server.in_flight:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.005)
        await one.close()
        assert (await call).text == "4"
        await other.close()


async def test_litellm_call_uses_the_answer_options_of_the_caller(server: FaultServer) -> None:
    worker = worker_of(server, limits=Limits(max_tokens=100, timeout=60.0), temperature=1.0)
    options = AnswerOptions(max_tokens=7, temperature=0.0, stop=("END",))
    await worker.answer(Request(HELLO.messages, seed="s", options=options))
    body = server.requests[0].body
    assert (body["max_tokens"], body["temperature"], body["stop"]) == (7, 0.0, ["END"])
    await worker.close()


async def test_litellm_streams_if_somebody_listens(server: FaultServer) -> None:
    worker, heard = worker_of(server), list[str]()
    reply = await worker.answer(Request(HELLO.messages, seed="s", on_text=heard.append))
    await worker.close()
    assert (reply.text, "".join(heard), reply.finish) == ("It is 4.", "It is 4.", "stop")
    assert server.requests[0].body["stream"] is True
    assert not reply.usage.estimated
    assert reply.first_token_s is not None


async def test_litellm_sends_tools_and_reads_their_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"message": message, "finish_reason": "tool_calls"}],
    }
    tool = {
        "type": "function",
        "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
    }
    async with FaultServer(rules=[Rule(fault=Verbatim(body=json.dumps(body)))]) as server:
        worker = worker_of(server)
        reply = await worker.answer(Request(HELLO.messages, seed="s", options=AnswerOptions(tools=(tool,))))
        await worker.close()
        assert server.requests[0].body["tools"] == [tool]
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", '{"a": 2}')]
    assert reply.finish == "tool_calls"


async def test_a_caller_cannot_send_the_key_elsewhere(server: FaultServer) -> None:
    worker = worker_of(server, extra={"top_k": 3})
    extra = {"api_base": "http://127.0.0.1:9/v1", "top_k": 5, "num_retries": 9}
    reply = await worker.answer(Request(HELLO.messages, seed="s", options=AnswerOptions(extra=extra)))
    await worker.close()
    assert (reply.text, server.requests[0].body["top_k"]) == ("It is 4.", 3)


async def test_litellm_drops_refused_parameters_in_later_calls() -> None:
    hello = Request((*HELLO.messages, *HELLO.messages), seed="s", options=AnswerOptions(temperature=0.5))
    for fault, dropped, folded in (
        (RefusedParameters(names=("temperature",)), ("temperature",), False),
        (StrictTemplate(), (), True),
    ):
        async with FaultServer("4", rules=[Rule(fault=fault)]) as server:
            worker = worker_of(server)
            replies = [await worker.answer(hello) for _ in range(2)]
            await worker.close()
            assert [request.status for request in server.requests] == [400, 200, 200]
        assert [(reply.dropped, reply.folded) for reply in replies] == [(dropped, folded)] * 2


async def test_all_kinds_of_tokens_are_counted() -> None:
    said = Answer("Four.", input_tokens=11, output_tokens=7, reasoning_tokens=3, cached_tokens=5)
    async with FaultServer(said) as server:
        worker = worker_of(server)
        reply = await worker.answer(HELLO)
        await worker.close()
    assert reply.usage == Usage(input_tokens=11, output_tokens=7, reasoning_tokens=3, cached_tokens=5)


@pytest.mark.parametrize(
    ("fault", "kind", "retryable", "part"),
    [
        (Status(code=500), "status", True, "status 500: "),
        (Status(code=502), "status", True, "status 502: "),
        (Status(code=503), "status", True, "status 503: "),
        (Status(code=400), "status", False, "status 400: "),
        (Status(code=403), "status", False, "(is the key right, and may it use this model?)"),
        (Status(code=404), "status", False, "(are base_url and model right?)"),
        (EchoHeaders(), "status", False, "(is the key right?)"),
        (RateLimited(), "rate_limited", True, "status 429: "),
        (HangUp(), "connection", True, "the connection failed"),
        (Reset(), "connection", True, "the connection failed"),
        (Redirect(to="http://127.0.0.1:9/x"), "connection", True, "the connection failed"),
        (TruncatedJson(), "protocol", True, "cut off or garbled"),
        (InvalidUtf8(), "protocol", True, "cut off or garbled"),
        (DeepJson(), "protocol", True, "cut off or garbled"),
        (WrongContentType(), "status", True, "status 500: "),
        (EmptyChoices(), "protocol", True, "the reply has no choices"),
        (NullContent(), "protocol", True, "the reply has no text"),
        (ContentFilter(), "content_filter", False, "it refused"),
        (ErrorInside(), "status", True, "status 502: "),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
async def test_litellm_makes_one_request_and_one_error_per_fault(
    server: FaultServer, fault: Any, kind: str, retryable: bool, part: str
) -> None:
    server.rules = [Rule(fault=fault)]
    error = await failed(worker_of(server))
    assert (error.kind, error.retryable) == (kind, retryable)
    assert part in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("as_date", [False, True])
async def test_litellm_passes_on_the_retry_delay(server: FaultServer, as_date: bool) -> None:
    server.rules = [Rule(fault=RateLimited(retry_after=30, as_date=as_date))]
    error = await failed(worker_of(server))
    assert error.retry_after_s is not None
    assert 10 < error.retry_after_s <= 31  # A date has whole seconds.


@pytest.mark.parametrize("fault", [Hang(), SlowDrip(seconds=600)], ids=lambda fault: fault.kind)
async def test_litellm_call_over_its_time_limit_is_a_timeout(server: FaultServer, fault: Any) -> None:
    server.rules = [Rule(fault=fault)]
    error = await failed(worker_of(server, limits=Limits(timeout=1.0)))
    assert (error.kind, error.retryable) == ("timeout", True)
    await server.wait_until_idle()


async def test_a_wrong_key_is_reported_without_the_key(server: FaultServer) -> None:
    error = await failed(worker_of(server, key="sk-hush-other"))
    assert "(is the key right?)" in str(error)


async def test_an_unknown_provider_is_reported(server: FaultServer) -> None:
    error = await failed(worker_of(server, model="nobody/m"))
    assert (error.kind, error.retryable) == ("status", False)
    assert server.requests == ()


async def test_litellm_accepts_replies_with_missing_or_odd_fields(server: FaultServer) -> None:
    half = {
        "choices": [{"message": {"role": "assistant", "content": "half \ud800"}, "finish_reason": "stop"}]
    }
    server.rules = [
        Rule(fault=MissingUsage(), times=1),
        Rule(fault=WrongModel(model="other"), times=1),
        Rule(fault=Verbatim(body=json.dumps({**half, "id": "x", "object": "chat.completion"})), times=1),
    ]
    worker = worker_of(server)
    assert (await worker.answer(HELLO)).usage.estimated
    assert (await worker.answer(HELLO)).model == "other"
    assert (await worker.answer(HELLO)).text == "half \ufffd"
    await worker.close()


async def test_thoughts_and_other_finish_reasons_are_read_as_elsewhere(server: FaultServer) -> None:
    message = {"role": "assistant", "content": "<think>5?</think>4", "reasoning_content": "Hm."}
    body = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"message": message, "finish_reason": "length"}],
    }
    server.rules = [Rule(fault=Verbatim(body=json.dumps(body)))]
    worker = worker_of(server)
    reply = await worker.answer(HELLO)
    assert (reply.text, reply.reasoning, reply.finish) == ("4", "Hm.\n\n5?", "length")
    await worker.close()


async def test_a_secret_in_an_answer_is_taken_out() -> None:
    async with FaultServer(f"The key is {SECRET}.") as server:
        worker = worker_of(server)
        assert (await worker.answer(HELLO)).text == "The key is ***."
        await worker.close()


async def test_nothing_is_printed(server: FaultServer, capfd: pytest.CaptureFixture[str]) -> None:
    server.rules = [Rule(fault=Status(code=500), times=1)]
    worker = worker_of(server)
    with pytest.raises(WorkerError):
        await worker.answer(HELLO)
    await worker.answer(HELLO)
    await worker.close()
    assert capfd.readouterr() == ("", "")


async def test_a_cancelled_call_leaves_no_task_and_no_request(server: FaultServer) -> None:
    server.rules = [Rule(fault=Hang())]
    worker = worker_of(server)
    ours = asyncio.all_tasks()
    task = asyncio.create_task(worker.answer(HELLO))
    while not server.in_flight:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.wait_until_idle()
    await worker.close()
    left = {task.get_coro().__qualname__ for task in asyncio.all_tasks() - ours}  # type: ignore[union-attr]
    assert {name for name in left if not name.startswith("RequestHandler.")} == set()  # The server's own.


def test_a_pool_lives_through_several_event_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = tmp_path / "pool.toml"
    path.write_text(
        "[[worker]]\nname = 'm'\nkind = 'litellm'\nmodel = 'openai/m'\napi_key_env = 'MY_KEY'\n"
        f"base_url = 'http://127.0.0.1:{port}/v1'\n"
    )
    pool = open_pool(path)

    async def ask() -> str:
        async with FaultServer("It is 4.", keys=[SECRET], port=port):
            try:
                return (await pool[0].answer(HELLO)).text
            finally:
                await pool.close()

    assert [asyncio.run(ask()) for _ in range(3)] == ["It is 4."] * 3
