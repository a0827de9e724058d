"""What a call took that gave no answer: the provider's count, an estimate, or nothing."""

import asyncio
import json
from typing import Any

import pytest

from chat_endpoint import Endpoint, ask, event, failure, wire
from chat_worker import ChatClient
from podium.types import Price, Receipt, Usage

COUNTS = {"prompt_tokens": 100, "completion_tokens": 40}
COUNTED = Usage(input_tokens=100, output_tokens=40)
SENT = 4
"""Tokens of `MESSAGES`, estimated."""
NOTHING = Usage()
WORDS = "word " * 40


def reply(content: str | None, finish: str | None = "stop", usage: Any = COUNTS, **message: Any) -> Any:
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {"choices": [choice]} | ({} if usage is None else {"usage": usage})


def delta(content: str, **more: Any) -> bytes:
    return event({"choices": [{"delta": {"content": content}, "finish_reason": None, **more}]})


async def lost(client: ChatClient, **settings: Any) -> Usage:
    """What a call that fails took."""
    receipt = Receipt()
    await failure(client, receipt=receipt, **settings)
    return receipt.spent.usage


def estimated(output_tokens: int) -> Usage:
    return Usage(input_tokens=SENT, output_tokens=output_tokens, estimated=True)


@pytest.mark.parametrize(
    ("body", "status", "taken"),
    [
        pytest.param(reply(""), 200, COUNTED, id="empty"),
        pytest.param(reply("", None), 200, COUNTED, id="empty, without a reason"),
        pytest.param(reply("", "length", reasoning_content="hm " * 9), 200, COUNTED, id="it only reasoned"),
        pytest.param(reply(None, "stop", refusal="I will not."), 200, COUNTED, id="a refusal"),
        pytest.param(reply("Half", "content_filter"), 200, COUNTED, id="a filter"),
        pytest.param(reply("Half", "error"), 200, COUNTED, id="an error as the reason"),
        pytest.param({"choices": [], "usage": COUNTS}, 200, COUNTED, id="no choices"),
        pytest.param({"error": "No.", "usage": COUNTS}, 200, COUNTED, id="an error, with counts"),
        pytest.param({"error": "No.", "usage": COUNTS}, 400, COUNTED, id="a status, with counts"),
        pytest.param(reply("", usage=None), 200, estimated(0), id="empty, not counted"),
        pytest.param(
            reply("", usage=None, reasoning="r" * 80), 200, estimated(20), id="reasoned, not counted"
        ),
        pytest.param({"choices": []}, 200, NOTHING, id="no choices, not counted"),
        pytest.param({"error": {"message": "Wrong."}}, 400, NOTHING, id="a wrong request"),
        pytest.param({"error": "slow down"}, 429, NOTHING, id="a limit"),
        pytest.param({"error": "down"}, 503, NOTHING, id="a server that is down"),
        pytest.param("<html>Login</html>", 200, NOTHING, id="a page"),
    ],
)
async def test_usage_of_a_reply_without_an_answer_is_reported(
    endpoint: Endpoint, client: ChatClient, body: Any, status: int, taken: Usage
) -> None:
    endpoint.answer(body, status)
    assert await lost(client) == taken


@pytest.mark.parametrize(
    ("pieces", "how", "taken"),
    [
        pytest.param([delta(WORDS)], {}, estimated(50), id="it breaks off"),
        pytest.param([delta(WORDS)], {"cut": True}, estimated(50), id="it is cut"),
        pytest.param([delta(WORDS)], {"hang": True}, estimated(50), id="it hangs"),
        pytest.param([], {"hang": True}, estimated(0), id="it hangs before the first token"),
        pytest.param(
            [delta(WORDS), event({"choices": [], "usage": COUNTS})], {}, COUNTED, id="counts, and no reason"
        ),
        pytest.param([delta("w", usage=COUNTS)], {}, COUNTED, id="counts in the choice"),
        pytest.param(
            [delta("w"), event({"error": {"message": "overloaded"}, "usage": COUNTS})],
            {},
            COUNTED,
            id="an error",
        ),
        pytest.param(
            [delta(WORDS), event({"error": "overloaded"})], {}, estimated(50), id="an uncounted error"
        ),
        pytest.param(
            [event({"choices": [], "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 40}})],
            {},
            COUNTED,
            id="counts alone",
        ),
    ],
)
async def test_usage_of_a_stream_without_an_answer_is_reported(
    endpoint: Endpoint, client: ChatClient, pieces: list[bytes], how: dict[str, Any], taken: Usage
) -> None:
    endpoint.stream(*pieces, **how)
    timeout = 1.0 if "hang" in how else 60.0  # On a busy machine the pieces take a while.
    assert await lost(client, stream=True, timeout=timeout) == taken


async def test_a_whole_reply_that_is_cut_off_is_estimated() -> None:
    body = json.dumps(reply("word " * 200)).encode()[:400]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    for whole in (head + body, head.replace(b"9999", str(len(body)).encode()) + body):
        async with wire(whole) as port:
            client = ChatClient(f"http://127.0.0.1:{port}/v1")
            assert await lost(client) == estimated(100)
            await client.close()


async def test_unsent_call_reports_no_usage() -> None:
    async with wire(b"") as port:
        pass
    client = ChatClient(f"http://127.0.0.1:{port}/v1")
    assert await lost(client) == NOTHING
    await client.close()


async def test_cancelled_call_reports_its_usage(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.stream(delta(WORDS), hang=True)
    came = asyncio.Event()
    for stream, taken in ((True, estimated(50)), (False, estimated(0))):
        endpoint.delay = 0.0 if stream else 60.0
        endpoint.asked.clear()
        receipt = Receipt()
        task = asyncio.create_task(
            ask(client, on_text=(lambda text: came.set()) if stream else None, receipt=receipt)
        )
        await (came.wait() if stream else endpoint.asked.wait())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert receipt.spent.usage == taken


async def test_call_ended_by_caller_timeout_reports_its_usage(endpoint: Endpoint, client: ChatClient) -> None:
    endpoint.delay = 60.0
    receipt = Receipt()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await ask(client, receipt=receipt, price=Price(input=1e6))
    assert (receipt.spent.usage, receipt.spent.cost_usd) == (estimated(0), SENT)
