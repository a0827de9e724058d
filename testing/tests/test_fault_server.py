"""The server where nothing goes wrong: who is answered, who is refused, what is remembered."""

import asyncio
import time
from typing import Any

import pytest

from podium_testing import Answer, FaultServer, Hang, Rule, SlowFirstByte, SlowFirstToken
from raw_client import ask, question

# --- answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_reply_carries_every_field_of_the_configured_answer(stream: bool) -> None:
    answer = Answer(
        "Four.",
        input_tokens=12,
        output_tokens=9,
        finish_reason="stop",
        model="m-2026-01-01",
        reasoning="Two and two make four, as ever.",
        reasoning_tokens=7,
        cached_tokens=5,
    )
    async with FaultServer(answer) as server:
        seen = await ask(server, question(stream=stream))
    assert (seen.text, seen.finish) == ("Four.", "stop")
    assert seen.usage == {
        "prompt_tokens": 12,
        "completion_tokens": 9,
        "total_tokens": 21,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    tables = seen.events if stream else [seen.json]
    assert {table["model"] for table in tables} == {"m-2026-01-01"}
    key = "delta" if stream else "message"
    thought = [choice[key].get("reasoning_content", "") for table in tables for choice in table["choices"]]
    assert "".join(thought) == answer.reasoning
    (request,) = server.requests
    assert (request.input_tokens, request.output_tokens, request.tokens) == (12, 9, 21)


async def test_a_stream_has_usage_only_on_request() -> None:
    async with FaultServer("Four.") as server:
        seen = await ask(server, question() | {"stream": True})
    assert seen.done
    assert seen.usage is None
    assert all("usage" not in event for event in seen.events)


async def test_a_callable_reads_the_messages_and_the_body() -> None:
    async def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return f"{messages[-1]['content']} at {body['temperature']}"

    async with FaultServer(answer) as server:
        seen = await ask(server, question("Two?") | {"temperature": 0.5})
    assert seen.text == "Two? at 0.5"


async def test_models_have_answers_of_their_own_and_others_are_unknown() -> None:
    models = {"small": "Four.", "large": lambda messages, body: Answer("4", output_tokens=100)}
    async with FaultServer(models=models) as server:
        small = await ask(server, question(model="small"))
        large = await ask(server, question(model="large"))
        unknown = await ask(server, question(model="medium"))
        listed = await ask(server, b"", method="GET", path="/v1/models")
    assert (small.text, large.text) == ("Four.", "4")
    assert large.usage["completion_tokens"] == 100
    assert unknown.status == 404
    assert unknown.json["error"]["code"] == "model_not_found"
    assert [model["id"] for model in listed.json["data"]] == ["small", "large"]
    assert [request.fault for request in server.requests] == [None, None, "model", None]


async def test_a_wrong_key_is_refused() -> None:
    async with FaultServer("Four.", keys={"right"}) as server:
        right, wrong = await ask(server, key="right"), await ask(server, key="wrong")
    assert right.good
    assert wrong.status == 401
    assert wrong.json["error"]["code"] == "invalid_api_key"
    assert "wrong" not in wrong.body.decode()
    assert server.requests[1].fault == "key"
    assert server.requests[1].headers["authorization"] == "Bearer wrong"
    assert "Bearer" not in repr(server.requests)


@pytest.mark.parametrize(
    ("body", "path", "status", "fault"),
    [
        (b"{", "/v1/chat/completions", 400, "body"),
        (b"[" * 100_000, "/v1/chat/completions", 400, "body"),
        (b"[]", "/v1/chat/completions", 400, "body"),
        ({"messages": []}, "/v1/chat/completions", 400, "body"),
        ({"model": "m", "messages": "Hi"}, "/v1/chat/completions", 400, "body"),
        (question(), "/chat/completions", 404, "path"),
    ],
)
async def test_malformed_request_to_fault_server_is_refused(
    body: object, path: str, status: int, fault: str
) -> None:
    async with FaultServer("Four.") as server:
        seen = await ask(server, body, path=path)
    assert seen.status == status
    assert seen.json["error"]["type"] == "invalid_request_error"
    assert server.requests[0].fault == fault


async def test_a_question_of_some_megabytes_is_read() -> None:
    async with FaultServer("Long.") as server:
        seen = await ask(server, question("a" * 5_000_000))
    assert seen.good
    assert len(server.requests[0].text) == 5_000_000


async def test_exception_after_reply_started_closes_the_reply() -> None:
    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        raise LookupError("too late")

    server = FaultServer(answer, rules=[Rule(fault=SlowFirstToken(seconds=0))])

    async def ask_it() -> None:
        async with server:
            seen = await ask(server)
            assert (seen.status, seen.whole, seen.ended) == (200, False, "closed")

    with pytest.raises(LookupError, match="too late"):
        await ask_it()


async def test_exception_of_answer_function_is_a_500_and_reraised_at_server_end() -> None:
    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        raise ConnectionError("no such thing")

    server = FaultServer(answer)

    async def ask_it() -> None:
        async with server:
            assert (await ask(server)).status == 500

    with pytest.raises(ConnectionError, match="no such thing"):
        await ask_it()
    assert not server.requests[0].went_away


# --- what is remembered ----------------------------------------------------------------------------------


async def test_a_request_is_remembered_while_it_goes_on_and_its_client_leaves() -> None:
    async with FaultServer(rules=[Rule(fault=Hang())]) as server:
        before = time.monotonic()
        asking = asyncio.create_task(ask(server, question("Anyone there?")))
        await server.wait_for_requests(1)
        (going,) = server.requests
        assert going.in_flight
        assert (going.ended_at, going.gone_at, going.seconds) == (None, None, None)
        asking.cancel()
        async with asyncio.timeout(10):
            await server.wait_until_idle()
        (gone,) = server.requests
    assert before <= gone.at <= gone.gone_at <= gone.ended_at <= time.monotonic()
    assert (gone.model, gone.text, gone.fault) == ("m", "Anyone there?", "hang")
    assert gone.body == question("Anyone there?")
    assert gone.went_away


async def test_the_peak_is_the_most_that_were_in_flight() -> None:
    async with FaultServer(rules=[Rule(fault=SlowFirstByte(seconds=0.05), times=7)]) as server:
        await asyncio.gather(*(ask(server) for _ in range(7)))
        await ask(server)
        assert server.peak == 7
        assert server.in_flight == 0
