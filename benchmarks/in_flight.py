"""10,000 questions in flight, whose worker answers after 1 s: seconds, memory, and what is lost; beside aiohttp alone.

python benchmarks/in_flight.py [--json FILE] [--questions 10000]

Podium and aiohttp each ask from a process of its own. Memory is the most that the process had resident, Python and all
modules included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

from endpoint import endpoint, write_pool
from peers import CLIENTS
from rows import Row, report

DELAY_S = 1
FILES = 1_000
"""Open files beside the connections."""


def question(number: int) -> str:
    """The text of one question."""
    return f"Question {number}: how many of the numbers from 1 to {number + 10} are primes?"


async def with_podium(url: str, questions: int) -> int:
    """Ask all at once; returns how many were answered."""
    from podium import Team  # noqa: PLC0415 - the peer's process does without it

    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder, "pool.toml")
        write_pool(pool, [url], f"concurrency = {questions}")
        async with Team.open(pool, planner="single:w0") as team:
            traces = await asyncio.gather(*(team.ask(question(number)) for number in range(questions)))
    return sum(trace.status == "ok" for trace in traces)


async def with_aiohttp(url: str, questions: int) -> int:
    """The same by hand."""
    async with CLIENTS["aiohttp"](url) as call:
        asked = ([{"role": "user", "content": question(number)}] for number in range(questions))
        return len(await asyncio.gather(*map(call, asked)))


CLIENT: dict[str, Callable[[str, int], Coroutine[None, None, int]]] = {
    "podium": with_podium,
    "aiohttp": with_aiohttp,
}


def ask(client: str, url: str, questions: int) -> None:
    """The process of one client: print its figures."""
    began = time.perf_counter()
    answered = asyncio.run(CLIENT[client](url, questions))
    seconds = time.perf_counter() - began
    print(
        json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, questions - answered])
    )


def main(file: Path | None, questions: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(questions + FILES, most), most))
    figures = {}
    for client in CLIENT:
        with endpoint() as address:
            words = [sys.executable, __file__, "--client", client, "--questions", str(questions)]
            done = subprocess.run(
                [*words, "--url", f"{address}/{DELAY_S}/v1"], check=True, stdout=subprocess.PIPE, text=True
            )
            figures[client] = json.loads(done.stdout)
    work = f"{questions:,} questions in flight, answered after {DELAY_S} s"
    ours, theirs = figures["podium"], figures["aiohttp"]
    peer = "aiohttp alone"
    report(
        [
            Row(f"{work}: seconds", ours[0], "s", peer, theirs[0], "≤ 15 s", False),
            Row(f"{work}: memory", ours[1], "MiB", peer, theirs[1], "≤ 1,024 MiB", False),
            Row(f"{work}: lost", ours[2], "questions", peer, theirs[2], "≤ 0 questions", False),
        ],
        file,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--client", choices=list(CLIENT), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        ask(given.client, given.url, given.questions)
    else:
        main(given.json, given.questions)
