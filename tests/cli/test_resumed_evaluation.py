"""An evaluation over workers that are paid for: killed, or stopped by its budget, it goes on and pays nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podium_testing import Answer, FaultServer
from tiny_policy import write_policy

KILLED = Path(__file__).parents[2] / "runs" / "killed.py"
QUESTIONS = 8
CALL_USD = 0.001
"""What each answer costs: 1,000 tokens at a dollar per million; and the most, for 1,000 are its limit."""

REFUSED = re.compile(
    r"podium: The call could cost \$0\.001000, and \$0\.000000 of the run's \$0\.004 are left \(\S+ spent, \S+ "
    r"reserved for calls in flight\): raise the run's budget, or lower the worker's max_tokens\. "
    r"The answers that were paid for are kept; run the same command again to continue\.\n"
)


def test_killed_evaluation_repeats_only_calls_that_were_in_flight():
    ended = subprocess.run(
        [sys.executable, KILLED, "--kills", "1", "--questions", "8", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout)
    assert figures["kills"] == 1
    assert figures["equal"], "the comparison is that of an evaluation which nobody killed"
    assert figures["kept"] == figures["alone"]
    assert 0 <= figures["lost"] <= figures["in_flight"]
    assert figures["spent_usd"] > 0


def add(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    a, b = map(int, re.findall(r"What is (\d+) \+ (\d+)\?", messages[-1]["content"])[0])
    return Answer(f"Answer: {a + b}", input_tokens=0, output_tokens=1000)


def prepare(url: str) -> None:
    """A pool of one endpoint, and sums to ask it."""
    write_policy(Path("leads"), podium={"prompt": {"style": "brief"}, "conducts": {"questions": "sums"}})
    Path("paid.toml").write_text(
        '[conductor]\ncheckpoint = "leads"\n'
        f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
        "price = { output = 1.0 }\nlimits = { concurrency = 2, max_tokens = 1000 }\n"
    )
    rows = [
        {"q": f"What is {n} + {3 * n}?", "gold": str(4 * n), "id": str(n)} for n in range(1, QUESTIONS + 1)
    ]
    Path("sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("sums.toml").write_text(
        'name = "sums"\n[[part]]\nset = "own"\nfiles = { test = "sums.jsonl" }\nquestion = "{q}"\n'
        'gold = "gold"\nid = "id"\n[part.grader]\nkind = "numeric"\n'
    )


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer(add) as serving:
        prepare(serving.url)
        yield serving


@pytest.fixture
def evaluate(podium: Callable[..., Any]) -> Callable[..., Any]:
    """Evaluates in this process, in a thread beside the server's loop."""

    async def command(*tokens: str) -> Any:
        fixed = ("--pool", "paid.toml", "--tasks", "sums.toml", "--questions", str(QUESTIONS), "--json")
        return await asyncio.to_thread(podium, "eval", *fixed, *tokens)

    return command


async def test_a_run_that_its_budget_stops_says_so_and_goes_on_with_more(
    evaluate: Callable[..., Any], server: FaultServer
) -> None:
    whole = await evaluate("--run", "whole")
    assert whole.status == 0
    needed = len(server.requests)
    assert needed > 4

    stopped = await evaluate("--run", "r", "--run-budget-usd", str(4 * CALL_USD))
    assert stopped.status == 1
    assert stopped.out == ""
    assert REFUSED.fullmatch(stopped.err), stopped.err
    assert len(server.requests) - needed == 4
    assert "comparison.json" not in os.listdir("r")

    again = await evaluate("--run", "r", "--run-budget-usd", str(4 * CALL_USD))
    assert (again.status, "$0.004000 spent, $0.000000 reserved" in again.err) == (1, True)
    assert len(server.requests) - needed == 4

    ended = await evaluate("--run", "r", "--run-budget-usd", "1")
    assert ended.status == 0
    assert len(server.requests) == 2 * needed, "nothing was asked twice"
    assert timeless(ended.out) == timeless(whole.out)


async def test_a_run_can_be_replayed_when_no_endpoint_answers_any_more(
    evaluate: Callable[..., Any], server: FaultServer
) -> None:
    whole = await evaluate("--run", "r")
    needed = len(server.requests)
    server.down()
    replayed = await evaluate("--run", "r", "replay=true")
    assert replayed.status == 0
    assert timeless(replayed.out) == timeless(whole.out)
    elsewhere = await evaluate("--cache", "r/responses.sqlite", "replay=true")
    assert timeless(elsewhere.out) == timeless(whole.out)
    assert len(server.requests) == needed


def timeless(out: str) -> Any:
    """What was found, without its times, without what was paid for when, and without how many looks came before."""
    comparison = json.loads(out)
    comparison["notes"] = [note for note in comparison["notes"] if not note.startswith("Look ")]
    for row in comparison["rows"]:
        del row["latency_s"], row["saved_usd"]
    return comparison
