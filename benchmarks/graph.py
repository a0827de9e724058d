"""An uneven graph of steps, whose critical path is 500 ms: Podium beside asyncio by hand and LangGraph.

python benchmarks/graph.py [--json FILE] [--rounds 10]

Step 0 takes 50 ms and step 1 takes 250 ms; step 2 (400 ms) reads step 0, step 3 (200 ms) reads step 1, and step 4
(50 ms) reads both. A scheduler that waits for whole levels needs 700 ms. The workers are HTTP endpoints; LangGraph's
nodes call the same endpoints with aiohttp. Each figure is the median of its rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

from endpoint import endpoint, write_pool
from peers import Call, aiohttp_call, run
from rows import Row, report

SECONDS = (0.05, 0.25, 0.4, 0.2, 0.05)
READS: tuple[tuple[int, ...], ...] = ((), (), (0,), (1,), (2, 3))
BEST_S = 0.5
QUESTION = "How many of the numbers from 1 to 1000 are the sum of two squares?"
PLAN = f"""
model_id = {list(range(len(SECONDS)))}
subtasks = {json.dumps([f"Do part {number}." for number in range(len(SECONDS))])}
access_list = {list(map(list, READS))}
"""


async def timed(ask: Callable[[], Awaitable[object]], rounds: int) -> float:
    """Milliseconds of one question (the median), after one that opens the connections."""
    spent = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        await ask()
        spent.append(1000 * (time.perf_counter() - began))
    return median(spent[1:])


async def with_podium(address: str, rounds: int) -> float:
    from podium import Team  # noqa: PLC0415 - LangGraph's environment lacks it

    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder, "pool.toml")
        write_pool(pool, [f"{address}/{seconds}/v1" for seconds in SECONDS])
        async with Team.open(pool, planner="single:w0") as team:

            async def ask() -> None:
                trace = await team.run(PLAN, QUESTION)
                assert trace.status == "ok", trace.error

            return await timed(ask, rounds)


def message(texts: list[str]) -> list[dict[str, str]]:
    """What a step is sent by hand."""
    return [{"role": "user", "content": "\n".join([QUESTION, *texts])}]


async def by_hand(calls: list[Call], rounds: int) -> float:
    """Each step is a task that awaits the tasks that it reads."""

    async def step(number: int, tasks: list[asyncio.Task[str]]) -> str:
        return await calls[number](message([await tasks[read] for read in READS[number]]))

    async def ask() -> None:
        tasks: list[asyncio.Task[str]] = []
        async with asyncio.TaskGroup() as group:
            for number in range(len(SECONDS)):
                tasks.append(group.create_task(step(number, tasks)))

    return await timed(ask, rounds)


async def with_langgraph(calls: list[Call], rounds: int) -> float:
    """A node for each step, an edge for each read."""
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415

    class State(TypedDict):
        texts: Annotated[dict[int, str], lambda one, other: one | other]

    def node(number: int) -> Callable[[Any], Awaitable[dict[str, Any]]]:
        async def work(state: Any) -> dict[str, Any]:
            texts = [state["texts"][read] for read in READS[number]]
            return {"texts": {number: await calls[number](message(texts))}}

        return work

    graph: Any = StateGraph(State)
    for number, reads in enumerate(READS):
        graph.add_node(f"step{number}", node(number))
        graph.add_edge([f"step{read}" for read in reads] if reads else START, f"step{number}")
    graph.add_edge(f"step{len(READS) - 1}", END)
    compiled = graph.compile()
    return await timed(lambda: compiled.ainvoke({"texts": {}}), rounds)


async def peer(name: str, address: str, rounds: int) -> float:
    """One of the two others."""
    async with aiohttp_call() as call:
        calls = [call(f"{address}/{seconds}/v1") for seconds in SECONDS]
        return await (by_hand if name == "asyncio" else with_langgraph)(calls, rounds)


def main(file: Path | None, rounds: int) -> None:
    work = f"an uneven graph, {1000 * BEST_S:.0f} ms at best"
    with endpoint() as address:
        ours = asyncio.run(with_podium(address, rounds))
        rows = [
            Row(work, ours, "ms", "the critical path", 1000 * BEST_S, "≤ 1.02", False),
            Row(
                work, ours, "ms", "asyncio by hand", asyncio.run(peer("asyncio", address, rounds)), "", False
            ),
        ]
        theirs = run([__file__, "--peer", "langgraph", "--address", address, "--rounds", str(rounds)], None)
        if theirs is not None:
            rows.append(Row(work, ours, "ms", "LangGraph", theirs, "", False))
    report(rows, file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        print(asyncio.run(peer(given.peer, given.address, given.rounds)))
        sys.exit()
    main(given.json, given.rounds)
