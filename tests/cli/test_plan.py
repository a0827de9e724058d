"""`podium plan`: what a plan would cost, from what past answers took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium_testing import FaultServer

PLAN = ("plan", "What is 2 + 3?", "--pool", "pool.toml", "--planner", "constant:plan.txt")


def estimated(podium: Any, *tokens: str) -> dict[str, Any]:
    document = json.loads(podium(*PLAN, "--json", *tokens).out)
    estimate: dict[str, Any] = document["estimate"]
    return estimate


def test_plan_estimate_without_past_answers_states_its_assumptions(podium: Any) -> None:
    drawn = podium(*PLAN)
    assert "past answers" in drawn.out
    assert (
        "Assumed where fewer than 5 past answers are known: responses of 500 tokens, 4 times fewer or 4 times more."
    ) in " ".join(drawn.out.split())
    assert "; assumed" in drawn.out
    first, _ = estimated(podium)["steps"]
    assert first["past_answers"] == 0
    assert first["output_tokens"] == {"low": 125, "likely": 500, "high": 2000}
    assert not Path("kept").exists()


@pytest.mark.parametrize("file", [False, True])
def test_a_plan_that_costs_money_is_paid_from_the_days_budget(
    podium: Any, monkeypatch: pytest.MonkeyPatch, file: bool
) -> None:
    if file:
        Path("team.toml").write_text("[budget]\nday_usd = 0.0\n")
    else:
        monkeypatch.setenv("PODIUM_DAY_BUDGET_USD", "0")
    with FaultServer("No plan.").in_thread() as endpoint:
        Path("paid.toml").write_text(
            f'[[worker]]\nname = "m"\nkind = "openai"\nmodel = "m"\nbase_url = "{endpoint.url}"\n'
            "price = { output = 1.0 }\n"
        )
        refused = podium("plan", "What is 2 + 3?", "--pool", "paid.toml")
    assert "of the day's $0 are left" in refused.err
    assert not endpoint.requests


def test_plan_estimate_uses_past_answers(podium: Any, ask: Any) -> None:
    for _ in range(5):
        assert ask("What is 2 + 3?").status == 0
    drawn = podium(*PLAN)
    assert "from 5 past answers" in drawn.out
    assert "Assumed" not in drawn.out
    estimate = estimated(podium)
    first, second = estimate["steps"]
    assert (first["past_answers"], second["past_answers"]) == (5, 5)
    # "2 + 3 = 5\nAnswer: 5" and "Right.\nAnswer: 5" are 5 and 4 tokens, each time.
    assert set(first["output_tokens"].values()) == {5}
    assert second["output_tokens"]["likely"] == 4
    for figure in ("input_tokens", "output_tokens", "cost_usd"):
        assert estimate[figure]["likely"] == pytest.approx(first[figure]["likely"] + second[figure]["likely"])
    assert estimate["cost_usd"]["likely"] < estimate["most_usd"]


def test_plan_estimate_reads_past_answers_from_the_named_store(
    podium: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        ask("What is 2 + 3?", "--store", "other.sqlite")
    assert estimated(podium)["steps"][0]["past_answers"] == 0
    assert estimated(podium, "--store", "other.sqlite")["steps"][0]["past_answers"] == 5
    assert estimated(podium, "--store", "none.sqlite")["steps"][0]["past_answers"] == 0
    assert estimated(podium, "store=postgresql://me@host/traces")["steps"][0]["past_answers"] == 0
    monkeypatch.setenv("PODIUM_STORE", "postgresql://me@host/traces")
    assert estimated(podium)["steps"][0]["past_answers"] == 0
