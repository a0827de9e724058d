"""What the response cache costs: a hit, an answer that is kept, a miss in replay, and room on the disk.

python benchmarks/response_cache.py [ANSWERS]

Requests of about 5 kB and answers of about 2 kB, in a file in the folder for temporary files.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import Message, Price, Profile, Usage
from podium.workers.base import Request
from podium.workers.response_cache import ResponseCache
from podium.workers.scripted import ScriptedWorker

MARK = "0123456789abcdef"
MISSES = 20


class Paid(ScriptedWorker):
    """One whose answers are worth keeping."""

    def __init__(self) -> None:
        super().__init__("paid", [], profile=Profile(name="paid", price=Price(input=1.0, output=2.0)))
        self.identity = {"kind": "openai", "url": "https://here/v1", "model": "m", "extra": {"top_p": 0.9}}


async def main(answers: int) -> None:
    """Measure and print."""
    rng = Random("benchmarks/response_cache")
    words = [f"word{number}" for number in range(5000)]

    def text(size: int) -> str:
        return " ".join(rng.choices(words, k=size))

    def request() -> Request:
        content = f"<<<question {MARK}>>>\n{text(600)}\n<<<end {MARK}>>>"
        return Request((Message(role="user", content=content),), seed="s", fence_mark=MARK)

    worker, requests = Paid(), [request() for _ in range(answers)]
    replies = [Reply(text(250), Usage(input_tokens=1400, output_tokens=500)) for _ in requests]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answers.sqlite"
        with ResponseCache(path) as cache:
            writes = [
                await timed(cache.get_or_call(worker, asked, _giving(reply)))
                for asked, reply in zip(requests, replies, strict=True)
            ]
            show("an answer is kept", writes)
            syncs = [synced(Path(folder) / "sync", 7000) for _ in range(50)]
            show("a sync of 7 kB on this disk, which it does without", syncs)
            rng.shuffle(requests)
            show("a hit", [await timed(cache.get_or_call(worker, asked, _never)) for asked in requests])
            print(f"{'room of an answer on the disk':52} {cache.size / answers / 1000:.1f} kB")
        with ResponseCache(path, replay=True) as cache:
            show("a miss in replay", [await timed(_missed(cache, worker, request())) for _ in range(MISSES)])
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")


def show(what: str, seconds: list[float]) -> None:
    """The middle, the 99th of a hundred, and the longest."""
    ordered = sorted(seconds)
    middle, late = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
    print(f"{what:52} {1e6 * middle:8.0f} us, 99 %: {1e6 * late:8.0f}, longest: {1e6 * ordered[-1]:8.0f}")


async def timed(work: Awaitable[object]) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def synced(path: Path, size: int) -> float:
    """Seconds until so many bytes are on the disk for certain."""
    began = time.perf_counter()
    with path.open("ab") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - began


def _giving(reply: Reply) -> Callable[[], Awaitable[Reply]]:
    async def ask() -> Reply:
        return reply

    return ask


async def _never() -> Reply:
    raise AssertionError("asked, though the answer is kept")


async def _missed(cache: ResponseCache, worker: Paid, request: Request) -> None:
    try:
        await cache.get_or_call(worker, request, _never)
    except WorkerError:
        return
    raise AssertionError("found, though it was never kept")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
