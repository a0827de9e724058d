"""Models that share a memory: twenty questions at once on a machine that holds one model and takes time to load it.

    python benchmarks/loads.py [--load 1.0] [--call 0.1] [--json FILE]

The machine is an endpoint that serves requests in the order in which they come, as servers do that load by themselves.
Three workers have a model each; every question is a chain of three steps. In one row all plans are the same; in the
other each is one of the six orders of the workers. Podium knows the machine (`limits.host`), and then it does not.
Both stand beside the best order, which a search finds: which model is loaded when, all calls for it that can be made
are made, and as many at once as the workers' concurrency.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

from rows import Row, report

from podium.planner import PlanRequest
from podium.team.runner import Runner
from podium.team.team_file import open_pool
from podium.trace import Plan
from podium.types import Question
from podium.workflow import Access, Step, Workflow
from podium_testing import FaultServer, SwappedModels

QUESTIONS, CONCURRENCY = 20, 4
WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "{name}"
base_url = "{url}"
limits = {{ concurrency = {concurrency}, timeout = 600{machine} }}
"""

Order = tuple[int, ...]
"""The workers of a chain, by number."""


class Planned:
    """Plans each question by the order that its text names."""

    name = "planned"

    async def plan(self, request: PlanRequest) -> Plan:
        order = map(int, request.question.text.split()[-1])
        steps = (Step(worker, f"Do part {k}.", Access(all=k > 0)) for k, worker in enumerate(order))
        return Plan("", Workflow(tuple(steps)))


def best_s(orders: Sequence[Order], load_s: float, call_s: float) -> float:
    """Seconds of the best order of loads, with all calls that can be made after each."""
    found = {tuple(orders): 0.0}
    best = float("inf")
    while found:
        after: dict[tuple[Order, ...], float] = {}
        for left, seconds in found.items():
            for model in {order[0] for order in left if order}:
                rest = tuple(order[1:] if order and order[0] == model else order for order in left)
                calls = sum(order != other for order, other in zip(left, rest, strict=True))
                took = seconds + load_s + -(-calls // CONCURRENCY) * call_s
                if any(rest):
                    after[rest] = min(took, after.get(rest, took))
                else:
                    best = min(best, took)
        found = after
    return best


async def measure(
    orders: Sequence[Order], folder: Path, load_s: float, call_s: float, *, known: bool
) -> tuple[float, int]:
    """Seconds until all questions are answered, and how many loads that took."""

    async def answer(messages: object, body: object) -> str:
        await asyncio.sleep(call_s)
        return "Answer: 7"

    models = SwappedModels(answer, load_s=load_s)
    async with FaultServer(models) as server:
        machine = ', host = "here"' if known else ""
        team = "".join(
            WORKER.format(name=name, url=server.url, concurrency=CONCURRENCY, machine=machine)
            for name in "abc"
        )
        path = folder / "team.toml"
        await asyncio.to_thread(path.write_text, team)
        pool = open_pool(str(path))
        runner = Runner(Planned(), pool)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, order in enumerate(orders):
                text = f"Question {number} of {''.join(map(str, order))}"
                group.create_task(runner.answer(Question(text=text), seed=str(number)))
        seconds = time.perf_counter() - began
        await pool.close()
    return seconds, len(models.loads)


def main(load_s: float, call_s: float, file: Path | None) -> None:
    """Measure and print."""
    mixed = list(permutations(range(3)))
    kinds = {
        "one plan for all": [(0, 1, 2)] * QUESTIONS,
        "six orders of the workers": [mixed[k % 6] for k in range(QUESTIONS)],
    }
    rows = []
    with TemporaryDirectory() as folder:
        for kind, orders in kinds.items():
            best = best_s(orders, load_s, call_s)
            for known, how in ((True, "grouped by model"), (False, "first come, first served")):
                seconds, loads = asyncio.run(measure(orders, Path(folder), load_s, call_s, known=known))
                work = f"{kind}, {how}: {loads} loads"
                goal = "ratio ≤ 1.3" if known else None
                rows.append(Row(work, seconds, "s", "the best order", best, goal, higher_is_better=False))
    report(rows, file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--call", type=float, default=0.1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    main(given.load, given.call, given.json)
