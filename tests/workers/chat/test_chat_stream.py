"""Streamed replies: put together whatever their dress, and told apart from those that broke off."""

import asyncio
import json

import pytest

from chat_endpoint import DONE, GOOD, KEY, USAGE, Endpoint, ask, delta, event, failure
from chat_worker import ChatClient
from podium.trace import Reply
from podium.types import Usage

WHOLE = [event(chunk) for chunk in (delta("", role="assistant"), delta("The answer"), delta(" is 4."))]
LINES = json.dumps(delta("The answer is 4."), indent=1).encode().splitlines()
END = [event(delta(finish="stop")), event(USAGE), DONE]


async def _reply(client: ChatClient, **settings: float) -> Reply:
    return await ask(client, stream=True, **settings)


async def test_a_stream_is_put_together(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.stream(*WHOLE, *END)
    reply = await _reply(client)
    assert (reply.text, reply.finish, reply.model) == ("The answer is 4.", "stop", "m-1")
    assert reply.usage == Usage(input_tokens=12, output_tokens=3)
    assert reply.first_token_s is not None
    assert 0 < reply.first_token_s < 5


@pytest.mark.parametrize(
    "pieces",
    [
        [*WHOLE, event(delta(finish="stop")), event(USAGE)],
        [*WHOLE, event(delta(finish="stop")), event(USAGE), b"data: [DONE]"],
        [*WHOLE, event(USAGE), DONE],
        [*WHOLE, event(delta(finish="stop") | {"usage": GOOD["usage"]})],
        [b": hello\n\n", *WHOLE, b"event: ping\ndata:\n\n", b"retry: 5\n\n", *END],
        [event({"choices": [], "prompt_filter_results": []}), *WHOLE, *END],
        [*WHOLE, *END[:2], b"data:[DONE]\n\n", b"data: garbage after the end\n\n"],
        [b"\xef\xbb\xbf", *WHOLE, *END],
        [b"".join(b"data: %s\n" % line for line in LINES), b"\n", *END],
        [*WHOLE, event({"choices": [{"index": 1, "delta": {"content": "5"}}]}), *END],
    ],
    ids=[
        "no DONE",
        "half a DONE",
        "no finish",
        "usage at once",
        "keep-alives",
        "Azure",
        "no space",
        "BOM",
        "lines",
        "two",
    ],
)
async def test_careless_streams_are_understood(
    endpoint: Endpoint, client: ChatClient, pieces: list[bytes]
) -> None:
    endpoint.stream(*pieces)
    reply = await _reply(client)
    assert (reply.text, reply.usage) == ("The answer is 4.", Usage(input_tokens=12, output_tokens=3))


async def test_streams_of_a_wrong_content_type_or_unrequested_are_read(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.stream(*WHOLE, *END, kind="text/plain")
    assert (await _reply(client)).text == "The answer is 4."
    endpoint.stream(*WHOLE, *END)
    assert (await ask(client)).text == "The answer is 4."


@pytest.mark.parametrize("stream", [True, False])
async def test_a_json_reply_with_the_content_type_of_a_stream_is_read(
    endpoint: Endpoint, client: ChatClient, stream: bool
) -> None:
    endpoint.stream(json.dumps(GOOD).encode())
    reply = await ask(client, stream=stream)
    assert (reply.text, reply.usage.estimated) == (GOOD["choices"][0]["message"]["content"], False)


@pytest.mark.parametrize("usage", [{}, {"usage": GOOD["usage"]}])
async def test_an_error_after_a_complete_streamed_answer_does_not_lose_it(
    endpoint: Endpoint, client: ChatClient, usage: dict[str, object]
) -> None:
    late = {"error": {"code": 500, "message": "Boom."}, **usage}
    endpoint.stream(*WHOLE, event(delta(finish="stop")), event(late))
    reply = await _reply(client)
    assert (reply.text, reply.finish, reply.usage.estimated) == ("The answer is 4.", "stop", not usage)


@pytest.mark.parametrize(
    "pieces", [[*WHOLE, event(delta(finish="error"))], [event(delta("", "stop"))], WHOLE]
)
async def test_an_error_event_before_the_end_of_an_answer_is_raised(
    endpoint: Endpoint, client: ChatClient, pieces: list[bytes]
) -> None:
    endpoint.stream(*pieces, event({"error": {"code": 502, "message": "Gone."}}))
    assert "status 502: Gone." in str(await failure(client, stream=True))


async def test_streamed_reasoning_sets_first_token_time_and_is_counted(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.stream(event(delta(reasoning_content="Hm. " * 10)), event(delta("4", "stop")), DONE, pause=0.01)
    reply = await _reply(client)
    assert reply.text == "4"
    assert reply.usage == Usage(input_tokens=4, output_tokens=11, estimated=True)
    assert reply.first_token_s is not None


async def test_a_secret_in_two_events_is_taken_out(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.stream(event(delta(f"It is {KEY[:9]}")), event(delta(f"{KEY[9:]}!", "stop")), DONE)
    assert (await _reply(client)).text == "It is ***!"


@pytest.mark.parametrize(
    ("pieces", "kind", "retryable", "said"),
    [
        (WHOLE, "connection", True, "the stream broke off after 16 characters, without finish_reason or [DONE]"),
        ([*WHOLE, b'data: {"choices": [{"del'], "connection", True, "the stream broke off"),
        ([*WHOLE, event(b'{"choices": [{"del'), *END], "protocol", True, "cut off or garbled"),
        ([event(b'{"choices": [{"delta": {"content": "\xff"}}]}'), *END], "protocol", True, "garbled"),
        ([event(b"[" * 100_000)], "protocol", True, "cut off or garbled"),
        ([event(b"[]")], "protocol", False, "the reply has no choices: []"),
        ([b"It works!"], "connection", True, "the stream broke off"),
        ([b"<html><b>Hello"], "protocol", True, "the reply is a page and not JSON"),
        ([], "connection", True, "the stream broke off after 0 characters"),
        ([DONE], "protocol", True, "the reply has no choices"),
        ([event(USAGE), DONE], "protocol", True, "the reply has no choices"),
        ([event(delta(finish="length")), DONE], "protocol", False, "raise max_tokens"),
        ([event(delta("No", "content_filter")), DONE], "content_filter", False, "it refused: content_filter"),
        ([event(delta(refusal="I will ")), event(delta(refusal="not.")), DONE], "content_filter", False, "I will not."),
        ([event({"error": {"code": 429, "message": "Slow."}})], "rate_limited", True, "status 429: Slow."),
        ([*WHOLE, event({"error": {"code": 502, "message": "Gone."}})], "status", True, "status 502: Gone."),
        ([*WHOLE, event({"error": {"message": f"Oops {KEY}"}})], "status", True, "it reports an error: Oops ***"),
        ([event({"error": {"message": "Oops"}})], "status", False, "it reports an error: Oops"),
        ([b'event: error\ndata: {"error": {"type": "overloaded_error"}}\n\n'], "status", True, "status 503"),
        ([b"data: " + b"x" * (9 << 20)], "protocol", False, "over 8 MiB"),
        ([event(delta("x" * (1 << 20)))] * 3, "protocol", False, "over 2,097,152 characters"),
    ],
)  # fmt: skip
async def test_a_stream_without_an_answer_is_an_error_that_says_why(  # noqa: PLR0917
    endpoint: Endpoint, client: ChatClient, pieces: list[bytes], kind: str, retryable: bool, said: str
) -> None:
    endpoint.stream(*pieces)
    error = await failure(client, 30.0, stream=True)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert said in str(error)


@pytest.mark.parametrize("pieces", [[], [event(b'{"usage": {"prom')]])
async def test_stream_broken_after_the_answer_loses_only_its_usage(
    endpoint: Endpoint, client: ChatClient, pieces: list[bytes]
) -> None:
    endpoint.stream(*WHOLE, event(delta(finish="stop")), *pieces, cut=True)
    reply = await _reply(client)
    assert (reply.text, reply.usage.estimated) == ("The answer is 4.", True)


async def test_a_stream_that_hangs_after_the_end_of_the_answer_is_an_answer(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.stream(*WHOLE, event(delta(finish="stop")), hang=True)
    assert (await _reply(client, timeout=2.0)).text == "The answer is 4."


async def test_comments_are_no_first_token(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.stream(*[b": waiting\n\n"] * 200, WHOLE[0], pause=0.01, hang=True)
    error = await failure(client, 30.0, stream=True, first_token_timeout=0.1)
    assert (error.kind, error.retryable) == ("timeout", True)
    assert str(error) == f"{endpoint.url}: no first token within 0.1 s (first_token_timeout)."
    await asyncio.wait_for(endpoint.gone.wait(), 5)


async def test_after_the_first_token_only_the_whole_time_counts(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.stream(*WHOLE, hang=True)
    error = await failure(client, 2.0, stream=True, first_token_timeout=1.5)
    assert error.kind == "timeout"
    assert str(error) == f"{endpoint.url}: no whole reply within 2 s (timeout), only 16 characters of it."
