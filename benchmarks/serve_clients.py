"""Processes to measure, and clients that ask them, for `serve.py`.

Clients ask without a pause, or now and then at their own moments; what came of their questions are `Answers`.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from secrets import token_hex
from typing import Any

import aiohttp

CLIENTS = 50
EVERY_S = 1.0
"""Between two questions of a client that asks now and then: 50 a second in all."""
KEY = f"sk-{token_hex(32)}"
"""That LiteLLM's proxy wants, and the others do not look at."""


@dataclass
class Answers:
    """What came of questions."""

    seconds: list[float] = field(default_factory=list)
    """Of each answer."""
    errors: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0
    """Seconds to the last answer; of clients that ask now and then, the seconds in which each of them asks."""

    @property
    def answered(self) -> int:
        return len(self.seconds)

    def add(self, other: Answers) -> None:
        """What came of others, after these."""
        self.seconds += other.seconds
        self.errors += other.errors
        self.elapsed_s += other.elapsed_s

    def at(self, share: float) -> float:
        """Milliseconds within which this share was answered."""
        return 1000 * sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


@contextmanager
def process(
    words: list[str], ready: Callable[[str], str | None], **variables: str
) -> Iterator[tuple[str, int]]:
    """A process that runs until the block ends: what `ready` reads out of its lines, and its number."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | variables
    ) as child:
        try:
            assert child.stdout is not None
            lines: list[str] = []
            said = None
            for line in child.stdout:
                lines.append(line)
                if (said := ready(line)) is not None:
                    break
            if said is None:
                raise RuntimeError(f"{Path(words[0]).name} ended with {child.wait()}. {' '.join(lines[-8:])}")
            # Its further lines have to go somewhere, or it waits for a reader.
            with subprocess.Popen(["cat"], stdin=child.stdout, stdout=subprocess.DEVNULL):
                try:
                    yield said, child.pid
                finally:
                    end(child)
        finally:
            end(child)


def end(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        child.kill()


def address(line: str) -> str | None:
    """The first address in a line."""
    found = re.search(r"http://[^\s)]+", line)
    return found[0] if found else None


@asynccontextmanager
async def clients(number: int) -> AsyncIterator[aiohttp.ClientSession]:
    """Room for so many at once."""
    connector = aiohttp.TCPConnector(limit=number)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(120)) as session:
        yield session


async def ask(session: aiohttp.ClientSession, url: str, body: Mapping[str, Any], asked: Answers) -> None:
    """One question, to its end."""
    began = time.perf_counter()
    try:
        async with session.post(
            f"{url}/chat/completions", json=body, headers={"authorization": f"Bearer {KEY}"}
        ) as reply:
            text = await reply.text()
        broken = "stream" in body and ("[DONE]" not in text or 'data: {"error"' in text)
        if reply.status != 200 or broken:
            asked.errors.append(f"{reply.status}: {text[-200:]}")
            return
    except (aiohttp.ClientError, TimeoutError) as error:
        asked.errors.append(repr(error))
        return
    asked.seconds.append(time.perf_counter() - began)


def question(model: str, client: int, number: int) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"Question {number} of client {client}?"}],
    }


async def now_and_then(url: str, model: str, seconds: float) -> Answers:
    """Clients that ask at their own moments."""
    asked = Answers(elapsed_s=seconds)
    async with clients(CLIENTS) as session:

        async def client(which: int) -> None:
            rng = Random(f"benchmark/{which}")
            await asyncio.sleep(rng.uniform(0, EVERY_S))
            ends, number = time.perf_counter() + seconds, 0
            while time.perf_counter() < ends:
                pause = asyncio.create_task(asyncio.sleep(EVERY_S * rng.uniform(0.5, 1.5)))
                await ask(session, url, question(model, which, number), asked)
                await pause
                number += 1

        await asyncio.gather(*map(client, range(CLIENTS)))
    return asked


async def without_pause(url: str, model: str, number: int, seconds: float, **more: Any) -> Answers:
    """So many clients that each ask again once they are answered."""
    asked, began = Answers(), time.perf_counter()
    async with clients(number) as session:

        async def client(which: int) -> None:
            ends, count = time.perf_counter() + seconds, 0
            while time.perf_counter() < ends:
                await ask(session, url, question(model, which, count) | more, asked)
                count += 1

        await asyncio.gather(*map(client, range(number)))
        asked.elapsed_s = time.perf_counter() - began
    return asked


def cpu(number: int) -> float:
    """Seconds that a process and those that it started have computed for."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # It has ended meanwhile.
            continue
        if number in (int(folder.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(number: int) -> float:
    status = Path(f"/proc/{number}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


async def alive(url: str) -> None:
    """Wait until somebody answers there."""
    async with asyncio.timeout(120), clients(1) as session:
        while True:
            try:
                async with session.get(url) as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)
