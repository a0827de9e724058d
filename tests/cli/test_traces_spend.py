"""`podium traces spend`: the sums of a store in the terminal and as JSON, and the day's budget."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from podium.spending.shared_spend_limit import DAY_BUDGET
from podium.store import TraceStore
from podium.trace import Trace
from postgres_server import DATABASES


def test_sums_are_printed_by_worker_with_accuracy_and_the_days_budget(
    podium, ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("The first?")
    podium("traces", "outcome", "--right", json.loads(podium("traces", "list", "--json").out)[0]["id"])
    ask("The second?")
    monkeypatch.setenv(DAY_BUDGET, "5")
    lines = podium("traces", "spend").out.splitlines()
    names = [line.split()[0] for line in lines[1:6]]
    assert names == ["worker", "bob", "ada", "(planning)", "all"]
    total = json.loads(podium("traces", "spend", "--json").out)["total"]
    listed = json.loads(podium("traces", "list", "--json").out)
    assert total["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in listed))
    assert total["calls"] == sum(row["calls"] for row in listed)
    assert "100% (21% to 100%, n=1)" in lines[5]
    assert lines[6] == "Budget of today: $0 of $5.00 spent, $5.00 left"


def test_day_budget_of_the_team_file_is_shown_unless_yours_is_less(
    podium, ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("The first?")
    Path("team.toml").write_text("[budget]\nday_usd = 3.5\n")
    for own, shown in (("5", "$3.50"), ("2", "$2.00"), ("", "$3.50")):
        monkeypatch.setenv(DAY_BUDGET, own)
        last = podium("traces", "spend").out.splitlines()[-1]
        assert last == f"Budget of today: $0 of {shown} spent, {shown} left"
    Path("team.toml").write_text('pool = "pool.toml"\n[budget]\nday_usd = 3.5\n')
    assert "of $3.50 spent" in podium("traces", "spend").out, "a limit needs no trust"
    Path("team.toml").write_text("[budget]\nday_usd = -1\n")
    refused = podium("traces", "spend")
    assert (refused.status, "day_usd" in refused.err) == (2, True)


def test_days_and_groups_can_be_chosen(podium, ask) -> None:
    ask("The first?")
    by_day = json.loads(podium("traces", "spend", "--by", "day", "--since", "2d", "--json").out)
    assert [group["questions"] for group in by_day["groups"]] == [1]
    assert "(no key)" in podium("traces", "spend", "--by", "key").out
    assert (
        "No question from 2020-01-01 to 2020-01-30"
        in podium("traces", "spend", "--since", "2020-01-01", "--until", "2020-01-30").out
    )


@pytest.mark.parametrize("kind", DATABASES)
def test_the_store_of_the_environment_may_be_a_database(
    podium, ask, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, kind: str
) -> None:
    trace = Trace.model_validate_json(ask("The first?", "--json", "--no-store").out)
    store = request.getfixturevalue("postgres_url") if kind == "postgresql" else str(Path("own.sqlite"))
    asyncio.run(keep(store, trace))
    monkeypatch.setenv("PODIUM_STORE", store)
    assert json.loads(podium("traces", "spend", "--json").out)["total"]["calls"] == trace.calls


async def keep(location: str, trace: Trace) -> None:
    store = TraceStore(location)
    store.add(trace)
    store.close()


def test_a_store_that_is_not_there_and_days_in_the_wrong_order_are_refused(podium, ask) -> None:
    missing = podium("traces", "spend")
    assert (missing.status, Path("kept").exists()) == (2, False)
    assert "There is no trace store at" in missing.err
    ask("The first?")
    assert (
        "the last day is before the first"
        in podium("traces", "spend", "--until", "2020-01-01", "--since", "1d").err
    )
