"""How well a worker's limits a minute are kept and used, beside aiolimiter's bucket in the same run.

python benchmarks/limits.py [SECONDS]

A worker with 600 requests and 60,000 tokens a minute is asked by 64 callers at full load; the server looks at every
window of a minute. Each of the two limits is the narrow one in one of two runs. The figures are of a server on this
machine; how soon the providers' own clocks tick is theirs.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from aiolimiter import AsyncLimiter

from podium.calls.rate_limiter import RateLimiter
from podium.types import Message
from podium.workers.base import Request, Worker
from podium.workers.pool import load_pool
from podium_testing import Answer, FaultServer, worst_minute

RPM, TPM, CALLERS = 600, 60_000, 64
QUESTION = 10
"""Tokens of a question."""
NARROW = {"requests": (1, 60), "tokens": (100, 600)}
"""Tokens of an answer, at least and at most: few, and requests are the narrow limit; many, and tokens are. The most is
also what both ways reserve for a call: 600 calls of 70 tokens a minute fit into the tokens, of 610 they do not."""

Ask = Callable[[str, Request], Awaitable[None]]


def answering(least: int, most: int) -> Callable[[list[dict[str, object]], dict[str, object]], Answer]:
    """Answers of so many tokens."""
    rng = Random("benchmarks/limits")
    return lambda messages, body: Answer(
        "Yes.", input_tokens=QUESTION, output_tokens=rng.randint(least, most)
    )


def with_podium(worker: Worker) -> Ask:
    """Through the rate limiter that the executor uses."""
    rate_limiter = RateLimiter(worker.limits)

    async def ask(caller: str, request: Request) -> None:
        permit = await rate_limiter.acquire(caller, reserved(worker))
        reply = await worker.answer(request)
        rate_limiter.release(permit, reply.usage.tokens)

    return ask


def with_aiolimiter(worker: Worker) -> Ask:
    """Through two leaky buckets of a minute, the usual recipe; what was reserved cannot be given back."""
    requests, tokens = AsyncLimiter(RPM, 60), AsyncLimiter(TPM, 60)

    async def ask(caller: str, request: Request) -> None:
        await requests.acquire()
        await tokens.acquire(reserved(worker))
        await worker.answer(request)

    return ask


def reserved(worker: Worker) -> int:
    """The most tokens of a call, with its question."""
    return QUESTION + worker.limits.max_tokens


async def measure(seconds: float, narrow: str, way: Callable[[Worker], Ask]) -> tuple[float, float]:
    """Of the narrow limit: the worst minute's share, and the share that was used of the whole time."""
    least, most = NARROW[narrow]
    async with FaultServer(answering(least, most)) as server:
        worker = open_worker(server.url, most)
        ask, ends, numbers = way(worker), time.monotonic() + seconds, count()

        async def caller(name: str) -> None:
            while time.monotonic() < ends:
                await ask(name, Request((Message(role="user", content=f"{next(numbers)}?"),), seed="0"))

        began = time.monotonic()
        callers = [asyncio.create_task(caller(f"{number}")) for number in range(CALLERS)]
        await asyncio.sleep(seconds)
        for task in callers:
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
        await worker.close()
        made = [request for request in server.requests if request.at < began + seconds]
        worst = worst_minute(made)
        if narrow == "requests":
            return worst.requests / RPM, len(made) / (RPM * seconds / 60)
        return worst.tokens / TPM, sum(request.tokens for request in made) / (TPM * seconds / 60)


def open_worker(url: str, most: int) -> Worker:
    """A worker of the server, whose answers have at most so many tokens."""
    limits = f"concurrency = {CALLERS}, rpm = {RPM}, tpm = {TPM}, max_tokens = {most}"
    written = f"""
[[worker]]
name = "limited"
kind = "openai"
model = "limited"
base_url = "{url}"
limits = {{ {limits} }}
"""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pool.toml"
        path.write_text(written)
        return load_pool(path)[0]


async def main(seconds: float) -> None:
    """Both limits, both ways, at the same time."""
    ways = {"Podium": with_podium, "aiolimiter": with_aiolimiter}
    runs = [(narrow, name) for narrow in NARROW for name in ways]
    figures = await asyncio.gather(*(measure(seconds, narrow, ways[name]) for narrow, name in runs))
    print(f"{seconds:g} s at full load, {CALLERS} callers\n")
    print("narrow limit  way         worst minute  used")
    for (narrow, name), (worst, used) in zip(runs, figures, strict=True):
        print(f"{narrow:<13} {name:<11} {worst:11.1%}  {used:5.1%}")
    by_run = dict(zip(runs, figures, strict=True))
    for narrow in NARROW:
        ratio = by_run[narrow, "Podium"][1] / by_run[narrow, "aiolimiter"][1]
        print(f"\n{narrow}: Podium uses {ratio:.2f} times what aiolimiter's bucket uses")


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 150.0))
