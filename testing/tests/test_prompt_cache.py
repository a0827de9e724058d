"""What a prompt cache counts, as a caller of the endpoint sees it."""

from __future__ import annotations

from typing import Any

from podium_testing import FaultServer, PromptCache
from raw_client import ask, question

LONG = {"role": "user", "content": "long " * 1000}  # 1,250 tokens
TURN = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}]


async def counts(server: FaultServer, *messages: dict[str, Any], **more: Any) -> tuple[int, int]:
    seen = await ask(server, question() | {"messages": list(messages)} | more)
    details = seen.usage["prompt_tokens_details"]
    return details["cached_tokens"], details.get("cache_write_tokens", 0)


async def test_a_prefix_that_was_sent_before_is_read_from_the_cache_of_its_model() -> None:
    async with FaultServer(PromptCache("Four.")) as server:
        assert await counts(server, LONG) == (0, 0)
        assert await counts(server, LONG, *TURN) == (1250, 0)
        assert await counts(server, LONG, *TURN, *TURN) == (1252, 0)
        assert await counts(server, TURN[1], LONG) == (0, 0)
        assert await counts(server, LONG, model="other") == (0, 0)
        assert await counts(server, LONG, tools=[{"type": "function"}]) == (0, 0)
        for _ in range(2):
            assert await counts(server, TURN[1]) == (0, 0), "too short to be kept"


async def test_cache_writes_are_counted_when_the_provider_reports_them() -> None:
    async with FaultServer(PromptCache("Four.", counts_writes=True)) as server:
        assert await counts(server, LONG) == (0, 1250)
        assert await counts(server, LONG, *TURN) == (1250, 2)
