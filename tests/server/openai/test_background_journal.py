"""What is kept of a response lets another server go on, wherever the first one was killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from podium.errors import UsageError
from podium.executor import ExecutionSettings
from podium.planner import Plan, PlanRequest
from podium.server.openai.background_journal import (
    BackgroundRequest,
    ResponseJournal,
    read_past,
    unfinished_trace,
)
from podium.server.requests import ChatRequest
from podium.team import Runner
from podium.team.journal import LOST
from podium.trace import RoundTrace, Trace
from podium.trace.background_table import BackgroundTable, EventRow
from podium.trace.store import open_store
from podium.types import Budget, Message, Price, Profile, Question, Spent, Usage
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step, Workflow

QUESTION = Question(text="What is 2 + 2?")
ROUNDS = (
    Workflow((Step(0, "one"), Step(1, "two"), Step(0, "three", Access(steps=(0, 1))))),
    Workflow((Step(1, "four", Access(previous=True)), Step(0, "five", Access(all=True)))),
)
CALLS = Counter({"plan 0": 1, "plan 1": 1, "one": 1, "two": 1, "three": 1, "four": 1, "five": 1})
SAID = {text: f"It is {text}." for text in CALLS}


class Planner:
    """The plans of `ROUNDS`, at a price."""

    name = "script"

    def __init__(self) -> None:
        self.made: list[str] = []

    async def plan(self, request: PlanRequest) -> Plan:
        number = len(request.outcomes)
        self.made.append(f"plan {number}")
        return Plan(
            f"plan {number}",
            ROUNDS[number],
            Spent(Usage(input_tokens=7), 0.5, saved_usd=0.25),
            messages=(Message(role="user", content="Plan."),),
            reasoning="Thought.",
            reason="Two calls agree.",
            edited=True,
        )


@pytest.fixture
async def table(tmp_path: Path) -> AsyncIterator[BackgroundTable]:
    store = open_store(tmp_path / "traces.sqlite")
    yield BackgroundTable(store.rows)
    await store.close()


async def answer(
    table: BackgroundTable,
    id: str,
    entries: Sequence[EventRow] = (),
    names: Sequence[str] = ("a", "b"),
    budget: Budget = Budget(rounds=2),
) -> tuple[Trace, Counter[str]]:
    """The trace of a response that goes on after `entries`, and the calls that this took."""
    row = await table.add(id, owner=None, caller=None, document="{}", holder="me", lease_s=60)
    for entry in entries:
        await table.append(id, "me", entry)
    price = Price(input=1000.0, output=1000.0)
    workers = {name: ScriptedWorker(name, SAID, profile=Profile(name=name, price=price)) for name in "abc"}
    pool, planner = Pool([workers[name] for name in names]), Planner()
    journal = ResponseJournal(
        table, row, read_past(row, entries, pool.names), len(entries), pool.names, patience_s=1
    )
    trace = await Runner(planner, pool, budget=budget, settings=ExecutionSettings()).answer(
        QUESTION, seed="s", trace_id="0" * 32, on_event=journal.observe, journal=journal
    )
    asked = [request.view.subtask for worker in workers.values() for request in worker.requests]
    return trace, Counter([*planner.made, *asked])


def told(trace: Trace) -> Any:
    """A trace without times and attempts."""
    return [
        (
            round_.plan_text,
            round_.plan_cost_usd,
            [(span.worker, span.messages, span.response, span.usage, span.cost_usd) for span in round_.spans],
        )
        for round_ in trace.rounds
    ]


async def test_wherever_it_stopped_it_repeats_only_what_was_in_flight(
    table: BackgroundTable,
) -> None:
    whole, calls = await answer(table, "whole")
    assert (whole.status, whole.answer, calls) == ("ok", "It is five.", CALLS)
    entries = await table.entries("whole")
    for count in range(len(entries) + 1):
        kept = entries[:count]
        resumed, more = await answer(table, f"cut {count}", kept)
        past = read_past(await added(table, f"cut {count}"), kept)
        finished = {f"plan {number}" for number in past.plans} | {
            span.subtask for span in past.spans.values()
        }
        assert more == Counter({call: 1 for call in CALLS if call not in finished})
        assert (resumed.status, resumed.answer, told(resumed)) == ("ok", "It is five.", told(whole))
        lost = [a.error_kind for span in resumed.spans for a in span.attempts].count(LOST)
        assert lost == len(past.interrupted)
        assert [n for n, r in enumerate(resumed.rounds) if r.plan_unpriced] == sorted(past.lost_plans)


async def added(table: BackgroundTable, id: str) -> Any:
    return await table.find(id)


async def test_what_was_spent_before_counts_in_the_budget_of_the_question(table: BackgroundTable) -> None:
    whole, _ = await answer(table, "whole")
    entries = await table.entries("whole")
    ended = next(n for n, entry in enumerate(entries) if entry.kind == "step") + 1
    poor = Budget(rounds=2, usd=whole.cost_usd / 10)
    resumed, calls = await answer(table, "poor", entries[:ended], budget=poor)
    assert not calls
    assert [span.status for span in resumed.spans] == ["done", "refused", "refused"]


async def test_a_plan_keeps_its_workers_in_a_pool_of_another_order(
    table: BackgroundTable,
) -> None:
    whole, _ = await answer(table, "whole")
    entries = await table.entries("whole")
    half = entries[: len(entries) // 2]
    resumed, _ = await answer(table, "turned", half, names=("c", "b", "a"))
    assert [span.worker for span in resumed.rounds[0].spans] == ["a", "b", "a"]
    assert resumed.answer == whole.answer
    with pytest.raises(UsageError, match="The worker 'b' of its plan is no longer"):
        await answer(table, "gone", half, names=("a", "c"))
    kept = BackgroundRequest(ChatRequest(QUESTION), None, {})
    failed = unfinished_trace(await added(table, "gone"), kept, half, "failed", "Gone.")
    done = [span for span in failed.spans if span.status == "done"]
    of_plan = {name for name in RoundTrace.model_fields if name.startswith("plan_")}
    assert failed.rounds[0].model_dump(include=of_plan) == whole.rounds[0].model_dump(include=of_plan)
    assert failed.cost_usd == pytest.approx(0.5 + sum(span.cost_usd for span in done))
    assert Trace.model_validate_json(failed.model_dump_json()) == failed
