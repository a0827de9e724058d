"""What the server adds to a question, how many it serves, and what a thousand streams cost; beside LiteLLM's proxy.

python benchmarks/serve.py [--seconds 10] [--streams 1000] [--stream-seconds 60] [--no-litellm]

Worker, server and clients are processes of their own on two cores of this machine, which they share. The worker is
`podium.testing`, which answers at once; the question has one step (planner single:ada), and every trace is written.
LiteLLM's proxy, with its defaults and without a database, stands before the same worker in an environment of its own,
which is made beside this file's; where the packages cannot be had, that is said, and the rest goes on.
What is added is measured with clients that ask now and then: when they ask without a pause, the time of a question
is that of the queue before it, and only the number of questions a second says something.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from secrets import token_hex
from typing import Any

import aiohttp

from podium.trace.store import TraceStore

CLIENTS = 50
EVERY_S = 1.0
"""Between two questions of a client that asks now and then: 50 a second in all."""
ANSWER = " ".join(["word"] * 8)
DRIP_S = 0.4
"""Before each piece of a stream: with nine or ten of them a stream lasts some 4 s."""
WARM_S = 2.0
KEY = f"sk-{token_hex(32)}"
"""That LiteLLM's proxy wants, and the others do not look at."""
LITELLM = Path(tempfile.gettempdir()) / "podium-benchmark-litellm"


@dataclass
class SampleRequest:
    """What came of questions."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    answered: int = 0

    def add(self, other: SampleRequest) -> None:
        """What came of others, too."""
        self.seconds += other.seconds
        self.errors += other.errors
        self.answered += other.answered

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


async def ask(
    session: aiohttp.ClientSession, url: str, body: Mapping[str, Any], asked: SampleRequest
) -> None:
    """One question, to its end."""
    began = time.perf_counter()
    try:
        async with session.post(
            f"{url}/chat/completions", json=body, headers={"authorization": f"Bearer {KEY}"}
        ) as reply:
            text = await reply.text()
        if reply.status != 200 or ("stream" in body and "[DONE]" not in text) or "error" in text:
            asked.errors.append(f"{reply.status}: {text[-200:]}")
            return
    except (aiohttp.ClientError, TimeoutError) as error:
        asked.errors.append(repr(error))
        return
    asked.answered += 1
    asked.seconds.append(time.perf_counter() - began)


def question(model: str, client: int, number: int) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"Question {number} of client {client}?"}],
    }


async def now_and_then(url: str, model: str, seconds: float) -> SampleRequest:
    """Clients that ask at their own moments."""
    asked = SampleRequest()
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


async def without_pause(url: str, model: str, number: int, seconds: float, **more: Any) -> SampleRequest:
    """So many clients that each ask again once they are answered."""
    asked = SampleRequest()
    async with clients(number) as session:

        async def client(which: int) -> None:
            ends, count = time.perf_counter() + seconds, 0
            while time.perf_counter() < ends:
                await ask(session, url, question(model, which, count) | more, asked)
                count += 1

        await asyncio.gather(*map(client, range(number)))
    return asked


def tell(name: str, asked: SampleRequest, seconds: float) -> float:
    """One row; questions a second."""
    rate = asked.answered / seconds
    print(
        f"  {name:<28}{rate:8.0f} a second   median {asked.at(0.5):7.1f} ms   p99 {asked.at(0.99):7.1f} ms   "
        f"errors {len(asked.errors)}",
        flush=True,
    )
    for error in asked.errors[:3]:
        print(f"    {error}")
    return rate


async def measure(
    url: str, worker: str, model: str, *, name: str, seconds: float, number: int
) -> tuple[float, int]:
    """The time that is added, and how many are served; questions a second, and all that were answered."""
    warm = await without_pause(url, model, CLIENTS, WARM_S)
    straight, through = SampleRequest(), SampleRequest()
    for _ in range(4):  # In turns: what else this machine does is shared by both.
        for where, what, asked in ((worker, "m", straight), (url, model, through)):
            asked.add(await now_and_then(where, what, seconds / 4))
    print(f"{name}, {CLIENTS} clients that ask now and then:")
    tell("the worker itself", straight, seconds)
    tell(name, through, seconds)
    added = [through.at(share) - straight.at(share) for share in (0.5, 0.99)]
    print(f"  added: {added[0]:.1f} ms at the median, {added[1]:.1f} ms at p99")
    print(f"{name}, {CLIENTS} clients without a pause:")
    cpu_s = cpu(number)
    asked = await without_pause(url, model, CLIENTS, seconds)
    rate = tell(name, asked, seconds)
    print(
        f"  the server's own CPU: {1000 * (cpu(number) - cpu_s) / max(1, asked.answered):.2f} ms a question"
    )
    return rate, warm.answered + through.answered + asked.answered


def cpu(number: int) -> float:
    """Seconds that a process has computed for; those of one that starts others are its own alone."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(number: int) -> float:
    status = Path(f"/proc/{number}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


async def streams(url: str, number: int, process_number: int, seconds: float) -> int:
    """A thousand streams at once, again and again; how many were answered."""
    print(f"Podium, {number} clients that stream for {seconds:.0f} s:")
    warm = await without_pause(url, "podium", number, 2 * WARM_S, stream=True)
    sizes: list[float] = []

    async def weigh() -> None:
        while True:
            sizes.append(memory_mib(process_number))
            await asyncio.sleep(seconds / 12)

    weighing = asyncio.create_task(weigh())
    asked = await without_pause(url, "podium", number, seconds, stream=True)
    weighing.cancel()
    tell("Podium", asked, seconds)
    print(f"  memory, MiB: {' '.join(f'{size:.0f}' for size in sizes)}", flush=True)
    return warm.answered + asked.answered


def litellm_ready(folder: Path) -> str | None:
    """LiteLLM's command in an environment of its own; None: it cannot be had, and why was said."""
    command = folder / "bin" / "litellm"
    if not command.exists():
        print("Installing LiteLLM's proxy in an environment of its own ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        installed = subprocess.run(
            [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "litellm[proxy]"],
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode:
            print(f"LiteLLM's proxy cannot be installed here: {installed.stderr.strip().splitlines()[-1]}")
            return None
    return str(command)


async def beside_litellm(folder: Path, worker: str, seconds: float) -> float | None:
    """The same questions through LiteLLM's proxy."""
    command = litellm_ready(LITELLM)
    if command is None:
        return None
    config = folder / "litellm.yaml"
    config.write_text(
        f"model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n"
        f"      api_base: {worker}\n      api_key: sk-x\n"
    )
    port = 20_000 + os.getpid() % 20_000
    words = [
        command,
        "--config",
        str(config),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--num_workers",
        "1",
    ]
    offline = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "DISABLE_ADMIN_UI": "True",
        "LITELLM_MASTER_KEY": KEY,
    }
    try:
        with process(words, lambda line: line if "Proxy initialized" in line else None, **offline) as (
            _,
            number,
        ):
            url = f"http://127.0.0.1:{port}"
            await alive(f"{url}/health/liveliness")
            rate, _ = await measure(url, worker, "m", name="LiteLLM's proxy", seconds=seconds, number=number)
            return rate
    except (RuntimeError, TimeoutError) as error:
        print(f"LiteLLM's proxy does not run here: {error}")
        return None


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


def kept(store: Path) -> int:
    """Traces with an answer."""
    with TraceStore(store) as traces:
        return len(traces.list(status="ok"))


async def main(given: argparse.Namespace) -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    print(f"Cores: {len(cores)}, shared by worker, server and clients. Load before: {os.getloadavg()[0]:.1f}")
    with (
        tempfile.TemporaryDirectory() as name,
        process([sys.executable, "-m", "podium.testing", f"answer={ANSWER}"], address) as (worker, _),
    ):
        folder = Path(name)
        rules = folder / "slow.toml"
        rules.write_text(
            f'answer = "{ANSWER}"\n[[rule]]\nfault = {{ kind = "slow-drip", seconds = {DRIP_S} }}\n'
        )
        store = folder / "traces.sqlite"
        with process([sys.executable, "-m", "podium.testing", str(rules)], address) as (slow, _):
            limits = f"limits = {{ concurrency = {given.streams + 100} }}"
            for file, url in (("fast", worker), ("slow", slow)):
                (folder / f"{file}.toml").write_text(
                    f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n{limits}\n'
                )

            def podium(pool: str) -> list[str]:
                return [
                    *(sys.executable, "-m", "podium", "serve", "--port", "0", "--store", str(store)),
                    *("--pool", str(folder / f"{pool}.toml"), "--planner", "single:ada"),
                ]

            with process(podium("fast"), address) as (url, number):
                rate, fast = await measure(
                    f"{url}/v1", worker, "podium", name="Podium", seconds=given.seconds, number=number
                )
            print(f"  traces kept of {fast} answers: {kept(store)}")
            with process(podium("slow"), address) as (url, number):
                streamed = await streams(f"{url}/v1", given.streams, number, given.stream_seconds)
            print(f"  traces kept of {streamed} answers: {kept(store) - fast}")
        if not given.no_litellm:
            theirs = await beside_litellm(folder, worker, given.seconds)
            if theirs:
                print(f"Podium serves {rate / theirs:.1f} times as many questions a second.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--stream-seconds", type=float, default=60.0)
    parser.add_argument("--no-litellm", action="store_true")
    asyncio.run(main(parser.parse_args()))
