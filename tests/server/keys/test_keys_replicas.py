"""Two server processes over one key store: budgets and rates are of both together."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import openai
import pytest

from key_storage import KeyStorage
from podium.server.keys.key_store import KeySpending
from podium.spending.spend_limit import NANO_PER_USD
from served_process import command

POOL = """
[[worker]]
name = "ada"
kind = "scripted"
replies = {{ "" = "Answer: 4" }}
delay = {delay}
price = {{ output = 10000.0 }}
limits = {{ max_tokens = 10, retries = 0, concurrency = 64 }}
"""
MOST_USD = 0.1
PAID_USD = 0.03
"""Of a call: three tokens of a cent; ten at most."""


class Running:
    """Processes of this test."""

    def __init__(self, storage: KeyStorage, folder: Path) -> None:
        self._storage, self._folder = storage, folder
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, count: int = 2, *, delay: float = 0.03) -> list[str]:
        """Addresses of new replicas, whose calls take `delay` seconds."""
        pool = self._folder / "pool.toml"
        pool.write_text(POOL.format(delay=delay))
        serve = command(
            "--pool", str(pool), "--planner", "single:ada", "--port", "0", "--store", self._storage.store
        )
        here = {**os.environ, "PODIUM_STORE": str(self._folder / "own.sqlite")}
        started = [
            subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=here, cwd=self._folder)
            for _ in range(count)
        ]
        self._processes += started
        said = [process.stdout.readline() for process in started if process.stdout is not None]
        assert all("(a key is needed)" in line for line in said), said
        return [f"{line.split()[3]}/v1" for line in said]

    def end(self, how: signal.Signals = signal.SIGTERM) -> list[int]:
        """End all; their statuses."""
        for process in self._processes:
            process.send_signal(how)
        statuses = [process.wait(timeout=60) for process in self._processes]
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.close()
        self._processes.clear()
        return statuses


@pytest.fixture
def running(storage: KeyStorage, tmp_path: Path) -> Iterator[Running]:
    processes = Running(storage, tmp_path)
    yield processes
    processes.end(signal.SIGKILL)


class WorkerCall:
    """Questions to several replicas at once, and what became of them."""

    def __init__(self, urls: list[str], key: str) -> None:
        self._urls, self._key = urls, key
        self.answered = 0
        self.refused: list[openai.APIStatusError] = []

    async def ask(self, count: int, *, in_flight: int) -> None:
        """`count` questions at each replica."""
        async with AsyncExitStack() as clients, asyncio.TaskGroup() as group:
            for url in self._urls:
                client = openai.AsyncOpenAI(base_url=url, api_key=self._key, max_retries=0)
                await clients.enter_async_context(client)
                questions = iter(range(count))
                for _ in range(in_flight):
                    group.create_task(self._work(client, questions))

    async def _work(self, client: openai.AsyncOpenAI, questions: Iterator[int]) -> None:
        for number in questions:
            try:
                await client.chat.completions.create(
                    model="podium", messages=[{"role": "user", "content": f"What is {number} + 4?"}]
                )
            except openai.APIStatusError as error:
                self.refused.append(error)
            else:
                self.answered += 1


async def spending(storage: KeyStorage, key: str, period: str = "") -> KeySpending:
    key_store = storage.open()
    try:
        return await key_store.spending(key, period)
    finally:
        await key_store.close()


async def until_reserved(storage: KeyStorage, key: str, usd: float) -> None:
    for _ in range(600):
        if (await spending(storage, key)).reserved == round(usd * NANO_PER_USD):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(await spending(storage, key))


async def test_many_questions_at_each_of_two_replicas_never_pass_the_budget(
    storage: KeyStorage, running: Running
) -> None:
    key, caller = await storage.added(budget="1.5")
    asking = WorkerCall(await asyncio.to_thread(running.start), key)
    peak, done, key_store = 0, asyncio.Event(), storage.open()

    async def watch() -> None:
        nonlocal peak
        while not done.is_set():
            now = await key_store.spending(caller.id or "", "")
            peak = max(peak, now.spent + now.reserved)
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    await asking.ask(64, in_flight=32)
    done.set()
    await watching
    await key_store.close()
    assert await asyncio.to_thread(running.end) == [0, 0]
    at_end = await spending(storage, caller.id or "")
    assert peak <= 1.5 * NANO_PER_USD
    assert peak > NANO_PER_USD, "they were in flight together"
    assert at_end.reserved == 0
    assert at_end.spent == asking.answered * round(PAID_USD * NANO_PER_USD)
    assert 1.5 - 3 * MOST_USD <= at_end.spent / NANO_PER_USD <= 1.5
    assert {(error.status_code, error.type) for error in asking.refused} == {(402, "budget_exceeded")}
    assert asking.answered + len(asking.refused) == 128


async def test_replicas_that_shut_down_settle_what_their_last_questions_paid(
    storage: KeyStorage, running: Running
) -> None:
    key, caller = await storage.added(budget="100")
    asking = WorkerCall(await asyncio.to_thread(running.start, delay=1.0), key)
    questions = asyncio.create_task(asking.ask(8, in_flight=8))
    await until_reserved(storage, caller.id or "", 16 * MOST_USD)
    assert await asyncio.to_thread(running.end) == [0, 0]
    await questions
    assert asking.answered == 16, "what was in flight ended"
    assert await spending(storage, caller.id or "") == KeySpending(16 * round(PAID_USD * NANO_PER_USD), 0)
