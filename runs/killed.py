"""What a kill costs: an evaluation over workers that are paid for, killed at random moments until it ends by itself.

python runs/killed.py [--kills 20] [--questions 40] [--seed 0] [--json]

The workers are a server on loopback that answers in 10 to 60 ms and says the same to the same question. `podium eval
--run` is killed with SIGKILL after a random number of answers and started again, then made once more in another folder
without a kill. Printed: the answers that the server gave, those that the cache has, those that were paid for and lost
to a kill (they were in flight), and whether both evaluations found the same. No network is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from podium_testing import FaultServer

CONCURRENCY = 4
"""Calls of each worker at once."""
_MAY_DIFFER = ("latency_s", "saved_usd", "notes")
WORKERS = {"small": ("0.5", "2.0", 60), "large": ("3.0", "12.0", 95)}
"""Dollars per million tokens in and out, and how many of a hundred questions each gets right."""


@dataclass(frozen=True)
class Figures:
    """What was counted."""

    kills: int
    answers: int
    """Given by the server to the evaluation that was killed."""
    kept: int
    """Replies in the run's cache."""
    lost: int
    """Answers that a kill kept from being kept: paid for, and asked again."""
    in_flight: int
    """Most calls that could be in flight at the kills, together."""
    alone: int
    """Answers to the evaluation that was not killed."""
    equal: bool
    """Whether both comparisons are the same but for times and for what was paid for when."""
    spent_usd: float
    held_usd: float
    """Of calls in flight at the kills: counted against the run's budget."""


async def speak(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """A sum, right or not, or a plan, by the question and the model alone; after a moment of random length."""
    text = "\n".join(message["content"] for message in messages)
    a, b = map(int, re.findall(r"What is (\d+) \+ (\d+)\?", text)[-1])
    drawn = int(sha256(f"{body['model']}/{a}/{b}".encode()).hexdigest(), 16)
    await asyncio.sleep(Random().uniform(0.01, 0.06))
    if "Write your plan" in text:
        return f'model_id = [{drawn % len(WORKERS)}]\nsubtasks = ["Add them."]\naccess_list = [[]]'
    return f"I add them up.\nAnswer: {a + b + (drawn % 100 >= WORKERS[body['model']][2])}"


def prepare(folder: Path, url: str, questions: int) -> None:
    """A pool of the server's models, and questions to ask them."""
    pool = [
        f'[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}"\nbase_url = "{url}"\n'
        f"price = {{ input = {price_in}, output = {price_out} }}\n"
        f"limits = {{ concurrency = {CONCURRENCY}, max_tokens = 200 }}\n"
        for name, (price_in, price_out, _) in WORKERS.items()
    ]
    (folder / "pool.toml").write_text("\n".join(['[conductor]\nworker = "small"\nplans = "text"\n', *pool]))
    draws = Random("killed/questions")
    rows = [
        {"question": f"What is {a} + {b}?", "gold": str(a + b), "id": f"q{number}"}
        for number in range(questions)
        for a, b in [(draws.randrange(1000), draws.randrange(1000))]
    ]
    (folder / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "sums.toml").write_text(
        'name = "sums"\n[[part]]\nset = "own"\nfiles = { test = "sums.jsonl" }\nquestion = "{question}"\n'
        'gold = "gold"\nid = "id"\n[part.grader]\nkind = "numeric"\n'
    )


async def start(folder: Path, run: str, questions: int) -> asyncio.subprocess.Process:
    """`podium eval` in a process of its own."""
    return await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "podium",
            "eval",
            "--run",
            run,
            "--pool",
            "pool.toml",
            "--tasks",
            "sums.toml",
        ),
        *("--questions", str(questions), f"eval.concurrency={2 * CONCURRENCY}", "--json"),
        cwd=folder,
        env={**os.environ, "PODIUM_STORE": str(folder / "traces.sqlite")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


def answered(server: FaultServer) -> int:
    """Requests that were answered well and to the end."""
    return sum(
        each.status == 200 and each.fault is None and each.output_tokens > 0 for each in server.requests
    )


async def until_killed(process: asyncio.subprocess.Process, server: FaultServer, answers: int) -> bool:
    """Kill `process` when the server has given so many more answers; False if it ended before."""
    goal = len(server.requests) + answers
    ended = asyncio.create_task(process.wait())
    while not ended.done() and len(server.requests) < goal:
        await asyncio.wait({ended}, timeout=0.002)
    if not ended.done():
        process.send_signal(signal.SIGKILL)
    return await ended == -signal.SIGKILL


async def measure(folder: Path, *, kills: int, questions: int, seed: int) -> Figures:
    """Run both evaluations in `folder`."""
    draws = Random(f"killed/{seed}")
    async with FaultServer(speak, models=list(WORKERS)) as server:
        prepare(folder, server.url, questions)
        killed = 0
        while True:
            process = await start(folder, "killed", questions)
            if killed < kills:
                killed += await until_killed(process, server, draws.randrange(1, 3 * questions // kills + 2))
            else:
                await process.wait()
            if process.returncode != -signal.SIGKILL:
                break
        await server.wait_until_idle()
        if process.returncode:
            assert process.stderr is not None
            raise SystemExit((await process.stderr.read()).decode())
        answers = answered(server)
        whole = await start(folder, "whole", questions)
        await whole.wait()
        alone = answered(server) - answers
    (kept,) = read(folder / "killed/responses.sqlite", "SELECT count(*) FROM replies")
    spent, held = read(folder / "killed/spending.sqlite", "SELECT spent, reserved FROM spending")
    return Figures(
        kills=killed,
        answers=answers,
        kept=kept,
        lost=answers - kept,
        in_flight=killed * CONCURRENCY * len(WORKERS),
        alone=alone,
        equal=found(folder / "killed") == found(folder / "whole"),
        spent_usd=spent / 1e9,
        held_usd=held / 1e9,
    )


def read(file: Path, query: str) -> tuple[Any, ...]:
    """The one row that the query finds."""
    with sqlite3.connect(file) as opened:
        row: tuple[Any, ...] = opened.execute(query).fetchone()
    opened.close()
    return row


def found(run: Path) -> Mapping[str, Any]:
    """The comparison without its times, without what was paid for when, and without how many looks came before."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(part) for key, part in value.items() if key not in _MAY_DIFFER}
        return [timeless(part) for part in value] if isinstance(value, list) else value

    comparison: Mapping[str, Any] = timeless(json.loads((run / "comparison.json").read_text()))
    return comparison


def lines(figures: Figures) -> Iterator[str]:
    """For people."""
    yield f"killed {figures.kills} times, at most {figures.in_flight} calls in flight then"
    yield f"answers given   {figures.answers}"
    yield f"answers kept    {figures.kept} (an evaluation without a kill: {figures.alone})"
    yield f"paid for twice  {figures.lost}"
    yield f"dollars         {figures.spent_usd:.6f} booked, {figures.held_usd:.6f} held by killed processes"
    yield f"same comparison {'yes' if figures.equal else 'NO'}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="podium-killed-"))
    try:
        figures = asyncio.run(measure(folder, kills=given.kills, questions=given.questions, seed=given.seed))
    finally:
        shutil.rmtree(folder)
    print(json.dumps(asdict(figures)) if given.json else "\n".join(lines(figures)))


if __name__ == "__main__":
    main()
