"""What a command's calls share: caches and budgets, for workers that are paid for and for those that are not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podium.trace import Trace
from podium_testing import Answer, FaultServer
from refused_commands import one_sentence
from scripted_team import write_sums

PLAN = ("--planner", "constant:plan.txt")
SIMULATED = ("ask", "What is 2 + 3?", "--pool", "pool.toml", *PLAN)


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    """Answers cost a tenth of a cent each; two workers, and three steps of which one is not run."""
    async with FaultServer(Answer("Answer: 5", input_tokens=0, output_tokens=1000)) as serving:
        prepare(serving.url)
        yield serving


def prepare(url: str) -> None:
    worker = '[[worker]]\nname = "{}"\nkind = "openai"\nmodel = "{}"\nbase_url = "{}"\n'
    worker += "price = {{ output = 1.0 }}\nlimits = {{ max_tokens = 1000 }}\n"
    Path("paid.toml").write_text("".join(worker.format(name, name, url) for name in ("ada", "bob")))


@pytest.fixture
def paid(podium: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a verb over the paid pool, in a thread beside the server's loop."""

    async def command(verb: str, *tokens: str) -> Any:
        return await asyncio.to_thread(podium, verb, *tokens, "--pool", "paid.toml")

    return command


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (["replay=true"], "replay answers from a response cache"),
        (["replay=true", "--cache", "none.sqlite"], "none.sqlite"),
        (["--cache", "plan.txt"], "The response cache plan.txt cannot be opened"),
    ],
)
def test_a_cache_that_cannot_be_used_is_refused_in_one_sentence(
    podium: Callable[..., Any], tokens: list[str], sentence: str
) -> None:
    before = sorted(os.listdir())
    assert sentence in one_sentence(podium(*SIMULATED, *tokens))
    assert sorted(os.listdir()) == before


async def test_a_budget_that_is_no_amount_is_refused_in_one_sentence(
    paid: Callable[..., Any], server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("-1", "nan"):
        refused = await paid("ask", "Q?", *PLAN, "--day-budget-usd", wrong)
        assert "budget.day_usd" in one_sentence(refused)
        refused = await paid("eval", "--run", "r", "--run-budget-usd", wrong)
        assert "budget.run_usd" in one_sentence(refused)
    monkeypatch.setenv("PODIUM_DAY_BUDGET_USD", "five")
    refused = await paid("ask", "Q?", *PLAN)
    assert one_sentence(refused) == "podium: PODIUM_DAY_BUDGET_USD=five: give dollars from 0 on.\n"
    assert not server.requests


def test_simulated_workers_use_none_of_the_day_budget(
    podium: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DAY_BUDGET_USD", "0")
    asked = podium(*SIMULATED, "--json")
    trace = Trace.model_validate_json(asked.out)
    assert trace.status == "ok"
    assert trace.cost_usd > 0, "by their prices"
    assert os.listdir("kept") == ["traces.sqlite"]


async def test_a_question_over_the_days_budget_fails_and_calls_no_worker(
    paid: Callable[..., Any], server: FaultServer
) -> None:
    asked = await paid("ask", "What is 2 + 3?", *PLAN, "--day-budget-usd", "0.0005")
    assert asked.status == 1
    assert "The call could cost $0.001000, and $0.000500 of the day's $0.0005 are left" in asked.err
    assert not server.requests


async def test_questions_of_a_day_share_its_budget(paid: Callable[..., Any], server: FaultServer) -> None:
    first = await paid("ask", "What is 2 + 3?", *PLAN, "--day-budget-usd", "0.003", "--json")
    assert Trace.model_validate_json(first.out).status == "ok"
    second = await paid("ask", "What is 2 + 4?", *PLAN, "--day-budget-usd", "0.003", "--json")
    trace = Trace.model_validate_json(second.out)
    assert (trace.status, trace.answer) == ("degraded", "Answer: 5")
    assert "of the day's $0.003 are left" in (trace.error or "")
    assert len(server.requests) == 3


async def test_a_cached_question_needs_no_budget(paid: Callable[..., Any], server: FaultServer) -> None:
    for budget in ("0.002", "0.002", "0"):
        asked = await paid(
            "ask", "What is 2 + 3?", *PLAN, "--cache", "c.sqlite", "--day-budget-usd", budget, "--json"
        )
        assert Trace.model_validate_json(asked.out).status == "ok"
    assert len(server.requests) == 2
    drawn = await paid("ask", "What is 2 + 3?", *PLAN, "--cache", "c.sqlite")
    assert "$0 ($0.0020 saved by the cache)" in " ".join(drawn.out.split())


async def test_a_recordings_budget_holds_over_all_its_starts(
    paid: Callable[..., Any], server: FaultServer
) -> None:
    tasks = str(write_sums(Path("sums.jsonl")))
    tokens = ("r.parquet", "--tasks", tasks, "--questions", "4", "--concurrency", "1")
    for _ in range(2):
        stopped = await paid("record", *tokens, "--run-budget-usd", "0.003")
        assert (stopped.status, len(server.requests)) == (1, 3)
        assert "of the run's $0.003" in stopped.out
    ended = await paid("record", *tokens, "--run-budget-usd", "1")
    assert (ended.status, len(server.requests)) == (0, 8)
    assert not any(".spending" in name for name in os.listdir())
