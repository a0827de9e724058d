"""Models that share a memory: twenty questions at once on a machine that holds one model and takes time to load it.

    python benchmarks/loads.py [--load 1.0] [--call 0.1] [--json FILE]
    python benchmarks/loads.py --files FIRST.gguf SECOND.gguf [--threads 1] [--tokens 4] [--json FILE]

Without files, the machine is an endpoint that only waits. Three workers have a model each; every question is a chain of
three steps. In one row all plans are the same; in the other each is one of the six orders of the workers. With two
files, it has real models (`swapped_servers`), the chains have two steps, and the workers' two orders are mixed. In both
cases it serves requests in the order in which they come, as servers do that load by themselves.

Podium knows the machine (`limits.host`), and then it does not. Both stand beside the best order, which a search finds:
which model is loaded when, all calls for it that can be made are made, and as many at once as the workers' concurrency.
With files the same calls are made by hand in that order; and in another row workers of kind `gguf` share the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from pathlib import Path
from tempfile import TemporaryDirectory

from openai import AsyncOpenAI

from podium.planners.planner import Planner, PlanRequest
from podium.team.runner import Runner
from podium.team.team_file import open_pool
from podium.trace import Plan, Span, Trace
from podium.types import Question
from podium.workflow import Access, Step, Workflow
from podium_testing import FaultServer, SwappedModels
from rows import Row, differing, report
from swapped_servers import SwappedServers

QUESTIONS, CONCURRENCY = 20, 4
CONTEXT = 1024
"""Tokens of a call of a real model."""
WORKER = """
[[worker]]
name = "{name}"
{model}
limits = {{ concurrency = {concurrency}, timeout = 600, max_tokens = {most}{machine} }}
"""
SHARED = ', host = "here"'
BEST = "the best order, by hand"

Order = tuple[int, ...]
"""The workers of a chain, by number."""


class Planned(Planner):
    """Plans each question by the order that its text names."""

    name = "planned"

    async def plan(self, request: PlanRequest) -> Plan:
        order = map(int, request.question.text.split()[-1])
        steps = (Step(worker, f"Do part {k}.", Access(all=k > 0)) for k, worker in enumerate(order))
        return Plan("", Workflow(tuple(steps)))


def best_order(orders: Sequence[Order], load_s: float, call_s: float) -> tuple[float, Order]:
    """The best order of loads, with all calls that can be made after each, and the seconds that it takes."""
    found: dict[tuple[Order, ...], tuple[float, Order]] = {tuple(orders): (0.0, ())}
    best: tuple[float, Order] = float("inf"), ()
    while found:
        after: dict[tuple[Order, ...], tuple[float, Order]] = {}
        for left, (seconds, loads) in found.items():
            for model in {order[0] for order in left if order}:
                rest = tuple(order[1:] if order and order[0] == model else order for order in left)
                calls = sum(order != other for order, other in zip(left, rest, strict=True))
                way = seconds + load_s + -(-calls // CONCURRENCY) * call_s, (*loads, model)
                if any(rest):
                    after[rest] = min(way, after.get(rest, way))
                else:
                    best = min(best, way)
        found = after
    return best


async def ask(
    path: Path, models: Mapping[str, str], orders: Sequence[Order], machine: str, most: int
) -> list[Trace]:
    """Ask all questions at once.

    Args:
        path: where the team file is written.
        models: of each worker the keys of its model.
        machine: the key of its machine, or "".
    """
    workers = (
        WORKER.format(name=name, model=keys, concurrency=CONCURRENCY, most=most, machine=machine)
        for name, keys in models.items()
    )
    await asyncio.to_thread(path.write_text, "".join(workers))
    pool = open_pool(str(path))
    runner = Runner(Planned(), pool)
    try:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    runner.answer(
                        Question(text=f"{number} + 17? Order {''.join(map(str, order))}"),
                        seed=str(number),
                    )
                )
                for number, order in enumerate(orders)
            ]
    finally:
        await pool.close()
    traces = [task.result() for task in asked]
    assert all(trace.status == "ok" for trace in traces), [trace.error for trace in traces]
    return traces


def endpoints(names: Sequence[str], url: str) -> dict[str, str]:
    """The keys of workers with these models at one address."""
    return {
        name: f'kind = "openai"\nmodel = "{name}"\nbase_url = "{url}"\ntemperature = 0.0' for name in names
    }


async def on_fake(
    orders: Sequence[Order], path: Path, load_s: float, call_s: float, machine: str
) -> tuple[float, int]:
    """Seconds until all questions are answered by models that only wait, and how many loads that took."""

    async def answer(messages: object, body: object) -> str:
        await asyncio.sleep(call_s)
        return "Answer: 7"

    models = SwappedModels(answer, load_s=load_s)
    async with FaultServer(models) as server:
        began = time.perf_counter()
        await ask(path, endpoints("abc", server.url), orders, machine, 64)
        return time.perf_counter() - began, len(models.loads)


async def in_order(
    url: str, names: Sequence[str], loads: Order, traces: Sequence[Trace], most: int
) -> list[str]:
    """Make the calls of these traces by hand: model by model, each time all that can be made.

    Returns:
        The answers of all steps, trace by trace.
    """
    left = [list(trace.spans) for trace in traces]
    answers = [[""] * len(trace.spans) for trace in traces]
    at_once = asyncio.Semaphore(CONCURRENCY)
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=600, max_retries=0) as client:

        async def call(question: int, span: Span) -> None:
            messages = [{"role": message.role, "content": message.content} for message in span.messages]
            async with at_once:
                reply = await client.chat.completions.create(
                    model=span.worker, messages=messages, temperature=0.0, max_tokens=most
                )
            answers[question][span.position] = reply.choices[0].message.content

        for model in loads:
            ready = [
                (question, spans.pop(0))
                for question, spans in enumerate(left)
                if spans and spans[0].worker == names[model]
            ]
            await asyncio.gather(*(call(*one) for one in ready))
    assert not any(left)
    return list(chain.from_iterable(answers))


@dataclass(frozen=True, slots=True)
class Files:
    """Real models by name, and how they are served."""

    paths: Mapping[str, Path]
    threads: int
    most: int
    """Tokens of an answer."""


async def on_real(
    orders: Sequence[Order], path: Path, files: Files, turns: int
) -> dict[str, tuple[float, int | None]]:
    """Of each way the seconds of the median turn, and how many loads that took."""
    names, most = list(files.paths), files.most
    _, loads = best_order(orders, 1.0, 0.1)
    own = {
        name: f'kind = "gguf"\nfile = "{file}"\ntemperature = 0.0\ncontext_tokens = {CONTEXT}\n'
        f"threads = {files.threads}"
        for name, file in files.paths.items()
    }
    traces: list[Trace] = []
    first: list[str] = []
    taken: dict[str, list[tuple[float, int | None]]] = {}
    for turn in range(turns):
        ways = ["grouped by model", BEST, "workers of kind gguf", "first come, first served"]
        for way in ways if turn % 2 == 0 else reversed(ways):
            async with SwappedServers(
                files.paths, slots=CONCURRENCY, context=CONCURRENCY * CONTEXT, threads=files.threads
            ) as servers:
                began = time.perf_counter()
                if way == BEST:
                    answers = await in_order(servers.url, names, loads, traces, most)
                else:
                    machine = "" if way == "first come, first served" else SHARED
                    keys = own if way == "workers of kind gguf" else endpoints(names, servers.url)
                    traces = await ask(path, keys, orders, machine, most)
                    answers = [span.response or "" for trace in traces for span in trace.spans]
                seconds = time.perf_counter() - began
            taken.setdefault(way, []).append((seconds, len(servers.loads) or None))
            first = first or answers
            print(
                f"{way}: {seconds:.1f} s, {len(differing(answers, first))} of {len(answers)} greedy answers "
                f"unlike the first way's, loads: {' '.join(servers.loads)}",
                flush=True,
            )
    return {way: sorted(turns)[len(turns) // 2] for way, turns in taken.items()}


def rows_of_fake(path: Path, load_s: float, call_s: float) -> Iterator[Row]:
    """Three models that only wait."""
    mixed = list(permutations(range(3)))
    kinds: dict[str, Sequence[tuple[int, ...]]] = {
        "one plan for all": [(0, 1, 2)] * QUESTIONS,
        "six orders of the workers": [mixed[k % 6] for k in range(QUESTIONS)],
    }
    for kind, orders in kinds.items():
        best, _ = best_order(orders, load_s, call_s)
        for machine, how in ((SHARED, "grouped by model"), ("", "first come, first served")):
            seconds, loads = asyncio.run(on_fake(orders, path, load_s, call_s, machine))
            yield row(f"{kind}, {how}: {loads} loads", seconds, best, machine != "")


def rows_of_real(path: Path, files: Files, turns: int) -> Iterator[Row]:
    """Two models behind llama.cpp's own servers."""
    kinds = {"one plan for all": [(0, 1)] * QUESTIONS, "two orders of the workers": [(0, 1), (1, 0)] * 10}
    for kind, orders in kinds.items():
        print(kind, flush=True)
        taken = asyncio.run(on_real(orders, path, files, turns))
        best, _ = taken.pop(BEST)
        for way, (seconds, loads) in taken.items():
            counted = "" if loads is None else f": {loads} loads"
            yield row(f"{kind}, {way}{counted}", seconds, best, way != "first come, first served")


def row(work: str, seconds: float, best: float, grouped: bool) -> Row:
    """One way beside the best order."""
    goal = "ratio ≤ 1.3" if grouped else None
    return Row(work, seconds, "s", "the best order", best, goal, higher_is_better=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--call", type=float, default=0.1)
    parser.add_argument("--files", type=Path, nargs=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=4, help="the most of an answer")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder, "team.toml")
        if given.files is None:
            rows = rows_of_fake(path, given.load, given.call)
        else:
            paths = {file.stem: file.absolute() for file in given.files}
            rows = rows_of_real(path, Files(paths, given.threads, given.tokens), given.turns)
        report(list(rows), given.json)


if __name__ == "__main__":
    main()
