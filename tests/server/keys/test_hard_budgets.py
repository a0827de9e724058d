"""A key's budget holds whatever the provider's tokenizer makes of the text, with many questions at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from key_storage import KeyStorage
from podium.spending.spend_limit import NANO_PER_USD
from podium_testing import Answer, FaultServer
from served_process import served

LIMIT_USD = 0.05
QUESTIONS = 24
"""The budget pays for about 16 of them."""
WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "{name}"
base_url = "{url}"
price = {{ input = 1.0, output = 10.0 }}
limits = {{ max_tokens = 20, retries = 0, concurrency = 64 }}
"""
EMOJI = "".join(map(chr, range(0x1F600, 0x1F640)))
TEXTS = {  # By worker: a text, and so many tokens for so many characters.
    "prose": ("Where does the old river meet the sea? ", 1, 4),
    "control": ("\0\x01\x02\x7f", 1, 1),
    "ascii-1": ("xQ7#", 1, 1),
    "ascii-4": ("xQ7#", 4, 1),
    "emoji-1": (EMOJI, 1, 1),
    "emoji-4": (EMOJI, 4, 1),
}


class Provider:
    """Counts as each worker's text wants it, with 8 tokens for a template, and remembers what it bills."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.billed_usd: Counter[str] = Counter()

    async def answer(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        await asyncio.sleep(0.05)
        _, tokens, characters = TEXTS[body["model"]]
        length = sum(len(message["content"]) for message in messages)
        counted = 8 + length * tokens // characters
        self.calls[body["model"]] += 1
        self.billed_usd[body["model"]] += (counted + 2 * 10) / 1e6
        return Answer("Here.", input_tokens=counted, output_tokens=2)


async def refusals(url: str, key: str, worker: str) -> int:
    """How many of `QUESTIONS` at once the budget of a key refuses."""
    text, tokens, characters = TEXTS[worker]
    words = text * (3_000 * characters // (tokens * len(text)))

    async def is_refused(number: int) -> bool:
        messages = [{"role": "user", "content": f"{number} {words}"}]
        reply = await client.post("/chat/completions", json={"model": worker, "messages": messages})
        assert reply.status_code == 200 or reply.json()["error"]["type"] == "budget_exceeded", reply.text
        return bool(reply.status_code == 402)

    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"{url}/v1", headers=headers, timeout=60) as client:
        return sum(await asyncio.gather(*map(is_refused, range(QUESTIONS))))


def test_concurrent_questions_stay_within_key_budget_for_any_text(
    storage: KeyStorage, tmp_path: Path
) -> None:
    # What a text costs is no matter of the store: the second has the extremes alone.
    texts = TEXTS if storage.store.endswith(".sqlite") else ("prose",)
    keys = {worker: asyncio.run(storage.added(worker, budget=str(LIMIT_USD))) for worker in texts}
    provider, refused = Provider(), {}
    with FaultServer(provider.answer).in_thread() as server:
        pool = tmp_path / "pool.toml"
        pool.write_text("".join(WORKER.format(name=worker, url=server.url) for worker in texts))
        with served(
            tmp_path, "--pool", str(pool), "--planner", "single:prose", "--store", storage.store
        ) as ours:
            for worker, (key, _) in keys.items():
                refused[worker] = asyncio.run(refusals(ours.url, key, worker))
            assert ours.end()[0] == 0

    async def spent_usd(key: str) -> float:
        key_store = storage.open()
        try:
            return (await key_store.spending(key, "")).spent / NANO_PER_USD
        finally:
            await key_store.close()

    for worker, (_, caller) in keys.items():
        billed = provider.billed_usd[worker]
        assert billed <= 1.01 * LIMIT_USD, worker
        assert billed >= 0.75 * LIMIT_USD, f"{worker}: nobody is refused while there is room"
        assert provider.calls[worker] + refused[worker] == QUESTIONS
        assert asyncio.run(spent_usd(caller.id or "")) == pytest.approx(billed)
