"""A training over workers that are paid for: stopped by its budget, it goes on, and pays for no call twice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podium_testing import Answer, FaultServer
from scripted_team import write_sums
from tiny_policy import FIRST, write_policy

CALL_USD = 0.001
"""What each answer costs: 1,000 tokens at a dollar per million; and the most, for 1,000 are its limit."""
ROLLOUTS = 8
"""Of an iteration."""
ENOUGH = 5
"""Calls that a budget pays for: more than the first iteration is likely to cost, and less than the training does."""
PLANS = tuple(FIRST.replace("[0]", f"[{worker}]", 1) for worker in range(3))
SHORT = (
    "max_steps=1",
    "grpo.iterations=2",
    "grpo.questions=2",
    f"grpo.group={ROLLOUTS // 2}",
    "grpo.save_every=1",
    "grpo.temperature=0.3",
)


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer(Answer("Answer: 4", input_tokens=0, output_tokens=1000)) as serving:
        worker = '[[worker]]\nname = "{}"\nkind = "openai"\nmodel = "{}"\nbase_url = "{}"\n'
        worker += "price = {{ output = 1.0 }}\nlimits = {{ concurrency = 8, max_tokens = 1000 }}\n"
        write(
            "paid.toml", "".join(worker.format(name, name, serving.url) for name in ("ada", "bram", "cleo"))
        )
        yield serving


def write(name: str, text: str) -> None:
    Path(name).write_text(text)


def count(query: str, name: str) -> tuple[Any, ...]:
    with sqlite3.connect(name) as file:
        found: tuple[Any, ...] = file.execute(query).fetchone()
    file.close()
    return found


async def test_a_training_its_budget_stopped_goes_on_and_shares_identical_calls(
    podium: Callable[..., Any], server: FaultServer
) -> None:
    write_policy(Path("start"), *PLANS)
    write_sums(Path("sums.jsonl"), splits=("train",))

    async def train(run: str, *tokens: str) -> Any:
        settings = ("start=start", "pool=paid.toml", "tasks=sums.jsonl", *SHORT)
        return await asyncio.to_thread(podium, "train", "--run", run, *settings, *tokens)

    whole = await train("whole")
    assert whole.status == 0, whole.err
    needed = len(server.requests)
    assert needed > ENOUGH
    assert count("SELECT count(*) FROM replies", "whole/responses.sqlite") == (needed,)
    assert sum(row["calls"] for row in rows("whole")) * ROLLOUTS > needed, "identical calls were made once"

    stopped = await train("r", "--run-budget-usd", str(ENOUGH * CALL_USD))
    assert stopped.status == 1
    assert "of the run's $0.005 are left" in stopped.err
    assert stopped.err.endswith(
        "The answers that were paid for are kept; run the same command again to continue.\n"
    )
    assert stopped.err.count("\n") == 1
    assert len(server.requests) == needed + ENOUGH
    assert count("SELECT spent, reserved FROM spending", "r/spending.sqlite") == (ENOUGH * 1_000_000, 0)

    ended = await train("r", "--run-budget-usd", "1")
    assert ended.status == 0, ended.err
    assert len(server.requests) == 2 * needed, "what was answered before the stop was not asked again"
    assert [row | {"seconds": None} for row in rows("r")] == [
        row | {"seconds": None} for row in rows("whole")
    ]


def rows(run: str) -> list[dict[str, Any]]:
    return [json.loads(row) for row in Path(run, "metrics.jsonl").read_text().splitlines()]
