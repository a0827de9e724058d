"""Traces, answers that were paid for, dollars and keys that Podium 0.1 kept, in the files of `test_files_of_0_1`."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podium.executor.accounts import Account
from podium.server.keys import Keys, open_register
from podium.trace import Trace
from podium.trace.explanation import explain


def traces() -> dict[str, Trace]:
    """By seed."""
    read = [Trace.model_validate_json(line) for line in Path("traces.jsonl").read_text().splitlines()]
    return {trace.seed: trace for trace in read}


# --- traces ------------------------------------------------------------------------------------------------


def test_traces_say_what_happened() -> None:
    read = traces()
    assert {seed: trace.status for seed, trace in read.items() if trace.status != "ok"} == {
        "4": "failed", "5": "degraded", "8": "failed", "12": "cancelled",
    }  # fmt: skip
    vote, team, accepted, asked_twice = read["1"], read["6"], read["11"], read["7"]
    assert vote.early_stop
    assert vote.answer == "2 of 2 responses agree.\nAnswer: yes"
    assert [span.status for span in vote.spans] == ["done", "done", "skipped", "skipped", "done"]
    assert vote.spans[0].recorded == "small#q21/ada/0"
    assert vote.pool[0].rating is not None or vote.pool[1].rating is not None
    assert read["2"].planner == "conductor:start"
    assert read["3"].spans[1].answered_by == "cy"
    assert team.spans[0].nested is not None
    assert [span.worker for span in team.spans[0].nested.spans] == ["ada", "bob", "cy"]
    assert len(asked_twice.rounds) == 2
    assert read["8"].rounds[0].plan_error_kind == "missing_list"
    (call,) = read["10"].tool_calls
    assert (call.name, read["10"].owner, read["10"].metadata) == ("weather", "web", {"for": "a test"})
    assert accepted.rounds[-1].accepted
    assert read["9"].uncached_usd == pytest.approx(0.004)
    assert read["9"].cost_usd == 0


def test_traces_are_imported_listed_shown_and_exported_unchanged(podium: Any) -> None:
    podium("traces", "import", "traces.jsonl", "--store", "new.sqlite")
    podium("traces", "export", "again.jsonl", "--store", "new.sqlite")
    again = [Trace.model_validate_json(line) for line in Path("again.jsonl").read_text().splitlines()]
    assert {trace.seed: trace for trace in again} == traces()
    for trace in again:
        assert (
            trace.question.text in podium("traces", "show", trace.id, "--full", "--store", "new.sqlite").out
        )


def test_of_old_traces_is_said_why_they_have_their_answer_as_far_as_they_tell() -> None:
    read = traces()
    explained = {seed: explain(trace) for seed, trace in read.items()}
    assert {seed: found.cost_usd for seed, found in explained.items()} == {
        seed: trace.cost_usd for seed, trace in read.items()
    }
    assert explained["1"].single is not None
    assert explained["1"].single.accuracy is not None


def test_a_store_is_listed_filtered_and_drawn(podium: Any) -> None:
    listed = podium("traces", "list").out
    assert listed.count("\n") == 4
    assert "degraded" in podium("traces", "list", "--status", "degraded").out
    shown = podium("traces", "show", traces()["5"].id).out
    assert "The budget of 2 calls is used up." in shown


# --- money and keys ----------------------------------------------------------------------------------------


def test_answers_that_were_paid_for_are_not_requested_again(podium: Any) -> None:
    shown = json.loads(podium("cache", "show", "answers.sqlite", "--json").out)
    assert {worker["worker"]: worker["replies"] for worker in shown["workers"]} == {"paid": 2, "team": 2}
    for question in ("What is 6 x 7?", "What is 7 x 7?"):
        tokens = ("--pool", "pools/cached.toml", "--planner", "constant:cached.txt", "--seed", "9", "--json")
        asked = podium("ask", question, *tokens, "--cache", "answers.sqlite", "--replay", "--no-store")
        trace = Trace.model_validate_json(asked.out)
        assert (trace.answer, trace.cost_usd) == ("Answer: 42", 0)
        assert [(span.worker, span.cached) for span in trace.spans] == [("paid", True), ("team", True)]


def test_what_was_spent_and_reserved_still_counts() -> None:
    with closing(Account(Path("spending.sqlite"), "run", 1.0)) as run:
        assert (run.spent_usd, run.reserved_usd) == (0.125, 0.0625)
    with closing(Account(Path("state.sqlite"), "day", 1.0, today=lambda: "2026-01-02")) as day:
        assert (day.spent_usd, day.reserved_usd) == (0.375, 0.0)


def test_who_rested_still_rests(podium: Any) -> None:
    paid, _ = json.loads(podium("pool", "list", "--pool", "pools/cached.toml", "--json").out)
    assert (paid["cooldown"]["failures"], paid["cooldown"]["error"]) == (10, "paid: HTTP 503.")


def test_keys_let_their_holders_in(podium: Any) -> None:
    web, me = json.loads(podium("keys", "list", "--json").out)
    assert (web["name"], web["rpm"], web["budget_usd"], web["allow"]) == ("web", 60, "5/day", ["ada", "bob"])
    assert (me["name"], me["admin"]) == ("me", True)

    key = Path("key.txt").read_text().strip()

    async def caller() -> Any:
        keys = Keys(open_register())
        try:
            return await keys.caller(f"Bearer {key}")
        finally:
            await keys.close()

    found = asyncio.run(caller())
    assert (found.name, found.deny, str(found.allowance)) == ("web", ("cy",), "5/day")
