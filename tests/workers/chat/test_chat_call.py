"""One call of the client: what is sent, and what of a good reply is understood."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from chat_endpoint import GOOD, KEY, Endpoint, ask, started
from chat_worker import ChatClient, chat_worker
from podium.errors import ConfigError
from podium.types import Limits, Profile, Usage
from podium.workers.chat.request_body import MaxTokensKey
from podium.workers.connections import Connections

PLAIN = {"model": "m", "messages": [{"role": "user", "content": "What is 2 + 2?"}]}


async def test_call_sends_only_the_given_options(endpoint: Endpoint, client: ChatClient) -> None:
    reply = await ask(client)
    assert reply.text == "4"
    assert reply.usage == Usage(input_tokens=12, output_tokens=3)
    await ask(client, max_tokens=7, temperature=0.0, send_seed=True, extra={"top_p": 0.5, "seed": 4})
    full = PLAIN | {"max_tokens": 7, "temperature": 0.0, "seed": 4, "top_p": 0.5}
    assert endpoint.bodies == [PLAIN | {"max_tokens": Limits().max_tokens}, full]
    assert [headers["Authorization"] for headers in endpoint.headers] == [f"Bearer {KEY}"] * 2


async def test_token_limit_in_extra_replaces_max_tokens(endpoint: Endpoint, client: ChatClient) -> None:
    await ask(client, max_tokens=9, extra={"max_completion_tokens": 7})
    assert endpoint.bodies[0].get("max_tokens") is None
    assert endpoint.bodies[0]["max_completion_tokens"] == 7


@pytest.mark.parametrize("extra", [{"n": 8}, {"max_tokens": 100_000}, {"max_completion_tokens": 8}])
async def test_extra_that_costs_more_than_is_reserved_is_refused(
    client: ChatClient, extra: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match="budget"):
        await ask(client, max_tokens=7, extra=extra)


@pytest.mark.parametrize(
    ("extra", "options"),
    [
        ({}, {"include_usage": True}),
        ({"stream_options": {"include_usage": False}}, {"include_usage": False}),
        ({"stream_options": {}}, None),
    ],
)
async def test_a_stream_requests_usage_unless_extra_says_otherwise(
    endpoint: Endpoint, client: ChatClient, extra: dict[str, Any], options: dict[str, Any] | None
) -> None:
    await ask(client, stream=True, extra=extra)
    assert endpoint.bodies[0]["stream"] is True
    assert endpoint.bodies[0].get("stream_options") == options


async def test_without_a_key_no_key_is_sent(endpoint: Endpoint) -> None:
    client = ChatClient(endpoint.url + "/chat/completions/")
    await ask(client)
    await client.close()
    assert "Authorization" not in endpoint.headers[0]


@pytest.mark.parametrize(
    ("url", "told", "sent"),
    [
        ("https://api.openai.com/v1", None, "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_tokens", "max_tokens"),
        ("https://x/v1", None, "max_tokens"),
        ("https://x/v1", "max_completion_tokens", "max_completion_tokens"),
    ],
)
async def test_openai_gets_max_completion_tokens_by_default(
    url: str, told: MaxTokensKey | None, sent: str
) -> None:
    worker = chat_worker(Profile(name="w"), ChatClient(url, max_tokens_key=told))
    assert worker._max_tokens_key == sent


async def test_a_reply_has_finish_reason_model_cached_and_reasoning_tokens(
    endpoint: Endpoint, client: ChatClient
) -> None:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    choice = {"message": {"content": "4 and", "reasoning_content": "Hm."}, "finish_reason": "length"}
    endpoint.answer({"model": "m-2026-01-01", "choices": [choice], "usage": usage})
    reply = await ask(client)
    assert (reply.text, reply.finish, reply.model, reply.first_token_s) == (
        "4 and",
        "length",
        "m-2026-01-01",
        None,
    )
    assert reply.usage == Usage(input_tokens=12, output_tokens=9, cached_tokens=8, reasoning_tokens=5)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "Answer: "}, {"type": "text", "text": "4"}], "Answer: 4"),
        ([{"type": "thinking", "thinking": [{"text": "Hm."}]}, "?", {"text": "4"}, {"text": 5}], "4"),
        ("half \ud83d, whole \ud83d\ude00", "half \ufffd, whole \U0001f600"),
    ],
)
async def test_content_becomes_a_text_that_can_be_kept(
    endpoint: Endpoint, client: ChatClient, content: object, text: str
) -> None:
    endpoint.answer({"choices": [{"message": {"content": content}}]})
    assert (await ask(client)).text == text


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/octet-stream"])
async def test_a_good_reply_under_a_wrong_name_is_a_reply(
    endpoint: Endpoint, client: ChatClient, kind: str
) -> None:
    endpoint.answer(GOOD, kind=kind)
    assert (await ask(client)).text == "4"
    assert (await ask(client, stream=True)).text == "4"


async def test_secrets_are_redacted_from_every_reply_field(endpoint: Endpoint, client: ChatClient) -> None:
    choice = {"message": {"content": f"You sent Bearer {KEY}."}, "finish_reason": KEY}
    endpoint.answer({"model": f"for-{KEY}", "choices": [choice]})
    reply = await ask(client)
    assert (reply.text, reply.finish, reply.model) == ("You sent Bearer ***.", "***", "for-***")


@pytest.mark.filterwarnings("error")
def test_a_client_lives_through_several_event_loops_and_leaves_none_open() -> None:
    endpoint = Endpoint()
    shared = Connections()

    async def asked() -> str:
        runner = await started(endpoint)
        client = ChatClient(endpoint.url, KEY, connections=shared)
        replies = await asyncio.gather(*(ask(client) for _ in range(3)))
        await runner.cleanup()
        return replies[0].text

    assert [asyncio.run(asked()) for _ in range(3)] == ["4", "4", "4"]


@pytest.mark.parametrize(
    "url", ["", "models.invalid", "ftp://x/v1", "http://", "http://[x", "http://x:port", "http://x y/v1"]
)
def test_invalid_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not an address such as"):
        ChatClient(url)


@pytest.mark.parametrize("url", ["https://me:hush@x/v1", "https://x/v1?key=hush", "htp://hush@[x"])
def test_an_address_with_a_secret_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ChatClient(url)
    assert "hush" not in str(caught.value)
