"""The clients beside Podium: aiohttp alone, and others in an environment of their own, which is made when first used.

python benchmarks/peers.py CLIENT URL reads {"questions": [...], "at_once": N} and prints its figures; `run` does that.
A question is a list of the messages of its steps; all steps but the last are called at once, and the last after them.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from environments import environment

Messages = list[dict[str, str]]
Call = Callable[[Messages], Awaitable[str]]
ENVIRONMENT = Path(tempfile.gettempdir()) / "podium-benchmark-peers", "openai", "litellm", "langgraph"
"""The environment of the other clients: its folder and their packages."""


@asynccontextmanager
async def aiohttp_call() -> AsyncIterator[Callable[[str], Call]]:
    """From an address to a function that calls it with aiohttp alone, in one session."""
    import aiohttp  # noqa: PLC0415

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        def to(url: str) -> Call:
            async def call(messages: Messages) -> str:
                body = {"model": "m", "messages": messages, "max_tokens": 4096}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    answer = await response.json()
                text: str = answer["choices"][0]["message"]["content"]
                return text

            return call

        yield to


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[Call]:
    async with aiohttp_call() as to:
        yield to(url)


@asynccontextmanager
async def _openai(url: str) -> AsyncIterator[Call]:
    from openai import AsyncOpenAI  # noqa: PLC0415

    async with AsyncOpenAI(base_url=url, api_key="none") as client:

        async def call(messages: Any) -> str:
            reply = await client.chat.completions.create(model="m", messages=messages, max_tokens=4096)
            return reply.choices[0].message.content or ""

        yield call


@asynccontextmanager
async def _litellm(url: str) -> AsyncIterator[Call]:
    import litellm  # noqa: PLC0415

    async def call(messages: Messages) -> str:
        reply = await litellm.acompletion(
            model="openai/m", api_base=url, api_key="none", messages=messages, max_tokens=4096
        )
        text: str = reply.choices[0].message.content
        return text

    yield call


CLIENTS = {"aiohttp": _aiohttp, "openai": _openai, "litellm": _litellm}


async def each_ms(ask: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Milliseconds of each of so many questions, one after another."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        await ask()
        spent.append(1000 * (time.perf_counter() - began))
    return spent


async def seconds_at_once(ask: Callable[[], Awaitable[object]], at_once: int, times: int) -> float:
    """Seconds in which so many tasks ask so many questions each."""

    async def asking() -> None:
        for _ in range(times):
            await ask()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(asking())
    return time.perf_counter() - began


async def ask_steps(call: Call, steps: Sequence[Messages]) -> None:
    """One question by hand: all steps but the last at once, then the last."""
    await asyncio.gather(*map(call, steps[:-1]))
    await call(steps[-1])


async def measure(client: str, url: str, work: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of one call (p50), and calls a second with so many questions at once."""
    async with CLIENTS[client](url) as call:
        one, steps, at_once = work["one"], work["steps"], work["at_once"]
        await seconds_at_once(lambda: ask_steps(call, steps), at_once, 1)
        singles = await each_ms(lambda: call(one), work["singles"])
        seconds = await seconds_at_once(lambda: ask_steps(call, steps), at_once, work["times"])
    calls = at_once * work["times"] * len(steps)
    return {"p50_ms": sorted(singles)[len(singles) // 2], "calls_s": calls / seconds}


def run(words: Sequence[str], given: object) -> Any:
    """What a script of this folder prints as JSON, run in the peers' environment, or None if that cannot be had."""
    programs = environment(*ENVIRONMENT)
    if programs is None:
        return None
    done = subprocess.run(
        [programs / "python", *words], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{' '.join(words[1:])} does not run here: {done.stderr.strip().splitlines()[-1]}")
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], sys.argv[2], json.load(sys.stdin)))))
