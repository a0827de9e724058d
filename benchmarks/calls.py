"""What Podium adds to a worker's HTTP call, beside aiohttp alone, openai's client and litellm.

python benchmarks/calls.py [--json FILE] [--rounds 5]

Two figures: the milliseconds (p50) of a question of one call, one question after another; and worker calls a second of
one process that answers 40 questions of 5 steps at once. The endpoint answers at once, from a process of its own. The
peers send the messages that Podium's workers were sent. Podium and aiohttp take turns in one process, on the standard
event loop, and their figures are medians of the rounds; openai's client and litellm have one round.

There is no goal. A question of one call takes 1.77 million instructions (callgrind), and aiohttp 0.54 of them. The rest
is spread: counting tokens and reading the reply have 15 %, frozen values 8 %, the plan 7 %, and nothing has more.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import median

from endpoint import endpoint, write_pool
from peers import CLIENTS, Messages, ask_steps, each_ms, run, seconds_at_once
from podium import Team
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan, Trace
from podium.workflow import Access, Step, Workflow
from rows import Row, report

AT_ONCE, TIMES = 40, 10
SINGLES = 500
SUBTASKS = ("Find an algorithm.", "Find its faults.", "Find a proof.", "Find an example.")
QUESTION = "How many of the numbers from 1 to 1000 are the sum of two squares?"
ONE = "a question of one HTTP call, p50"
MANY = f"worker calls a second, {AT_ONCE} questions of 5 steps at once"


class FiveSteps(Planner):
    """The same workflow for every question: four steps at once, and one that reads them."""

    name = "five steps"

    def __init__(self) -> None:
        last = Step(len(SUBTASKS), "Write the answer.", Access(all=True))
        self._workflow = Workflow((*(Step(*each) for each in enumerate(SUBTASKS)), last))

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan."""
        return Plan(text="", decision=self._workflow)


def sent(trace: Trace) -> list[Messages]:
    """The messages of each step."""
    return [[{"role": m.role, "content": m.content} for m in span.messages] for span in trace.spans]


async def beside_aiohttp(
    pool: Path, url: str, rounds: int
) -> tuple[dict[str, list[float]], dict[str, object]]:
    """The figures of each round, and the work for the other peers."""
    figures: dict[str, list[float]] = {name: [] for name in ("one", "one aiohttp", "many", "many aiohttp")}
    async with (
        Team.open(pool, planner="single:w0") as single,
        Team.open(pool, planner=FiveSteps()) as team,
        CLIENTS["aiohttp"](url) as call,
    ):

        async def ask() -> None:
            trace = await single.ask(QUESTION)
            assert trace.status == "ok", trace.error

        async def ask_team() -> Trace:
            trace = await team.ask(QUESTION)
            assert trace.status == "ok", trace.error
            return trace

        one, steps = sent(await single.ask(QUESTION))[0], sent(await ask_team())
        for number in range(rounds + 1):  # The first warms up.
            measured = {
                "one": median(await each_ms(ask, SINGLES)),
                "one aiohttp": median(await each_ms(lambda: call(one), SINGLES)),
                "many": await seconds_at_once(ask_team, AT_ONCE, TIMES),
                "many aiohttp": await seconds_at_once(lambda: ask_steps(call, steps), AT_ONCE, TIMES),
            }
            for name, figure in measured.items() if number else ():
                figures[name].append(figure)
    work = {"one": one, "steps": steps, "at_once": AT_ONCE, "times": TIMES // 2, "singles": SINGLES}
    return figures, work


def main(file: Path | None, rounds: int) -> None:
    with endpoint() as address, tempfile.TemporaryDirectory() as folder:
        url, pool = f"{address}/v1", Path(folder, "pool.toml")
        write_pool(pool, [url] * 5)
        figures, work = asyncio.run(beside_aiohttp(pool, url, rounds))
        calls = AT_ONCE * TIMES * len(work["steps"])  # type: ignore[arg-type]
        one, many = median(figures["one"]), calls / median(figures["many"])
        rows = [
            Row(ONE, one, "ms", "aiohttp alone", median(figures["one aiohttp"]), "", False),
            Row(MANY, many, "/s", "aiohttp alone", calls / median(figures["many aiohttp"])),
        ]
        here = str(Path(__file__).with_name("peers.py"))
        for client in ("openai", "litellm"):
            theirs = run([here, client, url], work)
            if theirs is not None:
                rows.append(Row(ONE, one, "ms", client, theirs["p50_ms"], "", False))
                rows.append(Row(MANY, many, "/s", client, theirs["calls_s"]))
    report(rows, file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    main(given.json, given.rounds)
