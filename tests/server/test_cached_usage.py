"""Cached input in the three APIs: each client's own counts, and dollars at the prices of the team file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openai_client
from podium_testing import Answer, FaultServer, PromptCache
from running_server import Serve

POOL = """
[[worker]]
name = "wren"
kind = "openai"
model = "m"
base_url = "{url}"
price = {{ input = 3.0, output = 15.0, cached_input = 0.3, cache_write = 3.75 }}
"""
LONG = "long " * 1000  # 1,250 tokens
TURNS: list[Any] = [
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Why?"},
]
WRITTEN = 1250 * 3.75e-6 + 10 * 15e-6
READ = 1250 * 0.3e-6 + 2 * 3.75e-6 + 10 * 15e-6


@pytest.fixture
def url(serve: Serve, tmp_path: Path) -> Iterator[str]:
    answer = PromptCache(Answer("Yes.", output_tokens=10), counts_writes=True)
    with FaultServer(answer).in_thread() as endpoint:
        path = tmp_path / "pool.toml"
        path.write_text(POOL.format(url=endpoint.url))
        yield serve(str(path))


def test_chat_completions_count_it_as_openai_does(url: str) -> None:
    client = openai_client.client(url)
    first: Any = client.chat.completions.create(model="wren", messages=TURNS[:1])
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert first.usage.cost == first.podium["cost_usd"] == pytest.approx(WRITTEN, abs=1e-12)
    second: Any = client.chat.completions.create(model="wren", messages=TURNS)
    assert (second.usage.prompt_tokens, second.usage.prompt_tokens_details.cached_tokens) == (1252, 1250)
    assert second.usage.cost == pytest.approx(READ, abs=1e-12)
    by_worker = second.podium["usage"]["workers"]["wren"]
    assert (by_worker["cached_tokens"], by_worker["cache_write_tokens"]) == (1250, 2)


def test_responses_count_it_as_openai_does(url: str) -> None:
    client = openai_client.client(url)
    client.responses.create(model="wren", input=TURNS[:1])
    second: Any = client.responses.create(model="wren", input=TURNS)
    assert (second.usage.input_tokens, second.usage.input_tokens_details.cached_tokens) == (1252, 1250)
    assert second.usage.cost == pytest.approx(READ, abs=1e-12)


def test_messages_count_it_as_anthropic_does(url: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    asked: dict[str, Any] = {"model": "wren", "max_tokens": 50}
    first = client.messages.create(messages=TURNS[:1], **asked)
    assert (first.usage.input_tokens, first.usage.cache_creation_input_tokens) == (0, 1250)
    second = client.messages.create(messages=TURNS, **asked).usage
    assert (second.cache_read_input_tokens, second.cache_creation_input_tokens) == (1250, 2)
    assert (second.input_tokens, second.output_tokens) == (0, 10)
    assert second.cost == pytest.approx(READ, abs=1e-12)
    with client.messages.stream(messages=TURNS, **asked) as stream:
        third = stream.get_final_message().usage
    assert (third.cache_read_input_tokens, third.cache_creation_input_tokens) == (1252, 0)
