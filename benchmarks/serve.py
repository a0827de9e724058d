"""What the server adds to a question, how many it serves, and what a thousand streams cost; beside LiteLLM's proxy.

python benchmarks/serve.py [--seconds 6] [--streams 1000] [--stream-seconds 15] [--no-litellm] [--json FILE]

Takes about two minutes, once LiteLLM is installed. Podium answers with one process, then with two (`--processes 2`).
Worker, server and clients are processes of their own on two cores of this machine, which they share. The worker is
`podium_testing`, which answers at once; the question has one step (planner single:ada), and every trace is written.
LiteLLM's proxy, with its defaults and without a database, stands before the same worker in an environment of its own,
which is made in the temporary folder; where the packages cannot be had, that is said, and the rest goes on.
What is added is measured with clients that ask now and then: when they ask without a pause, the time of a question
is that of the queue before it, and only the number of questions a second says something.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from environments import environment
from podium.store import TraceStore
from podium.store.query import TraceFilters
from rows import Row, write
from serve_clients import (
    CLIENTS,
    KEY,
    Answers,
    address,
    alive,
    cpu,
    memory_mib,
    now_and_then,
    process,
    without_pause,
)

ANSWER = " ".join(["word"] * 8)
DRIP_S = 0.4
"""Before each piece of a stream: with nine or ten of them a stream lasts some 4 s."""
WARM_S = 2.0
PEER = "LiteLLM's proxy"
LITELLM = Path(tempfile.gettempdir()) / "podium-benchmark-litellm", "litellm[proxy]"
"""The environment of LiteLLM's proxy: its folder and its package."""


@dataclass
class Measured:
    """What one server did."""

    rate: float
    """Questions a second, of clients without a pause."""
    cpu_ms: float
    """The server's CPU for each of them, all of its processes together."""
    added_ms: float
    """At the median, for clients that ask now and then."""
    answered: int
    """All questions of the measurement."""


def tell(name: str, asked: Answers) -> float:
    """One row; questions a second."""
    rate = asked.answered / asked.elapsed_s
    print(
        f"  {name:<28}{rate:8.0f} a second   median {asked.at(0.5):7.1f} ms   p99 {asked.at(0.99):7.1f} ms   "
        f"errors {len(asked.errors)}",
        flush=True,
    )
    for error in asked.errors[:3]:
        print(f"    {error}")
    return rate


async def measure(url: str, worker: str, model: str, *, name: str, seconds: float, number: int) -> Measured:
    """The time that is added, and how many are served.

    Args:
        number: of the server's process, or of the one that started its processes.
    """
    warm = await without_pause(url, model, CLIENTS, WARM_S)
    straight, through = Answers(), Answers()
    for _ in range(4):  # In turns: what else this machine does is shared by both.
        for where, what, asked in ((worker, "m", straight), (url, model, through)):
            asked.add(await now_and_then(where, what, seconds / 4))
    print(f"{name}, {CLIENTS} clients that ask now and then:")
    tell("the worker itself", straight)
    tell(name, through)
    added = [through.at(share) - straight.at(share) for share in (0.5, 0.99)]
    print(f"  added: {added[0]:.1f} ms at the median, {added[1]:.1f} ms at p99")
    print(f"{name}, {CLIENTS} clients without a pause:")
    cpu_s = cpu(number)
    asked = await without_pause(url, model, CLIENTS, seconds)
    rate = tell(name, asked)
    cpu_ms = 1000 * (cpu(number) - cpu_s) / max(1, asked.answered)
    print(f"  the server's own CPU: {cpu_ms:.2f} ms a question")
    return Measured(rate, cpu_ms, added[0], warm.answered + through.answered + asked.answered)


async def streams(url: str, number: int, process_number: int, seconds: float) -> tuple[int, float]:
    """A thousand streams at once, again and again; how many were answered, and the most memory in MiB."""
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
    tell("Podium", asked)
    print(f"  memory, MiB: {' '.join(f'{size:.0f}' for size in sizes)}", flush=True)
    return warm.answered + asked.answered, max(sizes)


async def beside_litellm(folder: Path, worker: str, seconds: float) -> Measured | None:
    """The same questions through LiteLLM's proxy."""
    programs = environment(*LITELLM)
    if programs is None:
        return None
    config = folder / "litellm.yaml"
    config.write_text(
        f"model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n"
        f"      api_base: {worker}\n      api_key: sk-x\n"
    )
    port = 20_000 + os.getpid() % 20_000
    words = [
        str(programs / "litellm"),
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
            return await measure(url, worker, "m", name=PEER, seconds=seconds, number=number)
    except (RuntimeError, TimeoutError) as error:
        print(f"LiteLLM's proxy does not run here: {error}")
        return None


def kept(store: Path) -> int:
    """Traces with an answer."""
    if not store.exists():
        return 0
    with TraceStore(store) as traces:
        return len(traces.list(TraceFilters(status="ok")))


async def main(given: argparse.Namespace) -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    print(f"Cores: {len(cores)}, shared by worker, server and clients. Load before: {os.getloadavg()[0]:.1f}")
    with (
        tempfile.TemporaryDirectory() as name,
        process([sys.executable, "-m", "podium_testing", f"answer={ANSWER}"], address) as (worker, _),
    ):
        folder = Path(name)
        rules = folder / "slow.toml"
        rules.write_text(
            f'answer = "{ANSWER}"\n[[rule]]\nfault = {{ kind = "slow-drip", seconds = {DRIP_S} }}\n'
        )
        store = folder / "traces.sqlite"
        with process([sys.executable, "-m", "podium_testing", str(rules)], address) as (slow, _):
            limits = f"limits = {{ concurrency = {given.streams + 100} }}"
            for file, url in (("fast", worker), ("slow", slow)):
                (folder / f"{file}.toml").write_text(
                    f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n{limits}\n'
                )

            def podium(pool: str, processes: int = 1) -> list[str]:
                return [
                    *(sys.executable, "-m", "podium", "serve", "--port", "0", "--store", str(store)),
                    *("--pool", str(folder / f"{pool}.toml"), "--planner", "single:ada"),
                    *("--processes", str(processes)),
                ]

            async def ours(name: str, processes: int) -> Measured:
                before = kept(store)
                with process(podium("fast", processes), address) as (url, number):
                    measured = await measure(
                        f"{url}/v1", worker, "podium", name=name, seconds=given.seconds, number=number
                    )
                print(f"  traces kept of {measured.answered} answers: {kept(store) - before}")
                return measured

            one = await ours("Podium", 1)
            theirs = None if given.no_litellm else await beside_litellm(folder, worker, given.seconds)
            two = await ours("Podium, 2 processes", 2)
            before = kept(store)
            with process(podium("slow"), address) as (url, number):
                streamed, mib = await streams(f"{url}/v1", given.streams, number, given.stream_seconds)
            print(f"  traces kept of {streamed} answers: {kept(store) - before}")
        if theirs is not None:
            print(f"Podium serves {one.rate / theirs.rate:.1f} times as many questions a second.")
        memory = Row(f"memory with {given.streams} streams", mib, "MiB", higher_is_better=False)
        write([*beside(one, two, theirs), memory], given.json)


def beside(one: Measured, two: Measured, theirs: Measured | None) -> list[Row]:
    """The figures of one process and of two, each beside LiteLLM's."""
    work = "questions a second through `podium serve`, kept in SQLite"
    added = "time that `podium serve` adds to a question, p50"
    peer = None if theirs is None else PEER
    rows = []
    for name, ours in (("", one), (", --processes 2", two)):
        rate, core_rate, added_ms = (
            (theirs.rate, 1000 / theirs.cpu_ms, theirs.added_ms) if theirs else [None] * 3
        )
        rows += [
            Row(f"{work}{name}", ours.rate, "1/s", peer, rate),
            Row(f"{work}{name}, of one core's time", 1000 / ours.cpu_ms, "1/s", peer, core_rate),
            Row(f"{added}{name}", ours.added_ms, "ms", peer, added_ms, higher_is_better=False),
        ]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--stream-seconds", type=float, default=15.0)
    parser.add_argument("--no-litellm", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    asyncio.run(main(parser.parse_args()))
