"""What was spent, in every store: sums by worker, key, planner and day, unpriced calls, and accuracy by feedback."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pytest

from podium.errors import UsageError
from podium.store import TraceStore
from podium.store.spend_report import SPEND_BY, Accuracy, SpendBy, SpendQuery
from podium.trace import Attempt, Outcome, Plan, Reply, RoundTrace, Span, Trace
from podium.trace.costs import PLANNING, Cost, costs_of
from podium.types import Price, Profile, Spent, Usage
from podium.workflow import Acceptance

MakeTrace = Callable[..., Trace]
FIRST, LAST = date(2026, 3, 1), date(2026, 3, 31)
POOL = (Profile(name="ada", price=Price(input=1.0, output=2.0)), Profile(name="bob"), Profile(name="cy"))


def said(tokens: int = 10, **more: Any) -> Reply:
    return Reply("5", Usage(input_tokens=tokens), **more)


def step(
    worker: str,
    usd: float = 0.0,
    *,
    tokens: int = 10,
    reply: Reply | None = None,
    unpriced: bool = False,
    **changes: object,
) -> Span:
    """A step that `worker` answered."""
    values = {
        "position": 0,
        "worker": worker,
        "subtask": "Add.",
        "status": "done",
        "answered_by": worker,
        "reply": reply or said(tokens),
        "spent": Spent(Usage(input_tokens=tokens), usd, unpriced),
        "attempts": (Attempt(worker=worker, started_s=0, ended_s=1),),
    }
    return Span.model_validate(values | changes)


def round_(spans: Sequence[Span], planned: Spent = Spent()) -> RoundTrace:
    numbered = tuple(span.model_copy(update={"position": at}) for at, span in enumerate(spans))
    return RoundTrace(plan=Plan("", Acceptance(), planned), spans=numbered)


def priced(make_trace: MakeTrace, id_: str, *spans: Span, plan_usd: float = 0.0, **changes: object) -> Trace:
    return make_trace(id_, pool=POOL, rounds=(round_(spans, Spent(cost_usd=plan_usd)),), **changes)


def test_costs_are_booked_to_the_worker_that_was_paid(make_trace: MakeTrace) -> None:
    lost = Attempt(worker="ada", started_s=0, ended_s=1, error_kind="timeout", spent=Spent(cost_usd=0.1))
    answered = Attempt(worker="bob", started_s=1, ended_s=2)
    nested = priced(make_trace, "inner", step("bob", 0.0), step("ada", 0.3, reply=said(recorded="r#1/ada/0")))
    spans = (
        step("ada", 0.4, answered_by="bob", attempts=(lost, answered)),
        step("cy", reply=said(cached=True), attempts=(), spent=Spent(saved_usd=0.5)),
        step("cy", 0.2, reply=said(recorded="set#1/cy/0")),
        step("cy", 0.0, tokens=0),
        step("team", 0.3, reply=said(nested=nested), unpriced=True),
        step("bob", status="skipped", attempts=(), spent=Spent()),
    )
    planned = round_(spans, Spent(Usage(output_tokens=5), 0.7, unpriced=True, saved_usd=0.2))
    found = costs_of(make_trace(pool=POOL, rounds=(planned, round_([step("bob", unpriced=True)]))))
    assert [cost._replace(usd=round(cost.usd, 9)) for cost in found] == [
        Cost(PLANNING, 1, 1, 5, 0.7, 0.0, 0.2),
        Cost("ada", 0, 0, 0, 0.1, 0.0, 0.0),
        Cost("bob", 2, 1, 20, 0.3, 0.0, 0.0),
        Cost("cy", 3, 0, 20, 0.2, 0.2, 0.5),
        Cost("team", 1, 1, 10, 0.3, 0.3, 0.0),
    ]


def questions(make_trace: MakeTrace) -> list[Trace]:
    """On three days, of two keys and none, by two planners, on the last day at its end."""
    return [
        priced(make_trace, "a", step("ada", 0.5), step("bob", unpriced=True), plan_usd=0.125, owner="shop"),
        priced(make_trace, "b", step("ada", 0.25), owner="shop", planner="random"),
        priced(make_trace, "c", step("ada", 1.0), started_at="2026-03-02T23:59:59Z", plan_usd=0.25),
        priced(
            make_trace,
            "d",
            step("cy", unpriced=True),
            owner="lab",
            started_at="2026-03-31T23:59:59.9Z",
            status="failed",
        ),
        priced(make_trace, "late", step("ada", 9.0), started_at="2026-04-01T00:00:00Z"),
        priced(make_trace, "early", step("ada", 9.0), started_at="2026-02-28T23:59:59Z"),
    ]


async def sums(
    store: TraceStore, by: SpendBy, owner: str | None = None
) -> dict[str | None, tuple[float, ...]]:
    spend = store.spend(SpendQuery(FIRST, LAST, by, owner))
    found = {}
    for group in spend.groups:
        found[group.name] = (
            group.cost_usd,
            group.planning_usd,
            group.questions,
            group.calls,
            group.unpriced_calls,
        )
        assert sum((day.cost_usd for day in group.days), 0.0) == group.cost_usd
    return found


async def test_dollars_are_summed_by_worker_key_planner_and_day(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    traces = questions(make_trace)
    for trace in traces:
        kept.add(trace)
    assert await sums(kept, "worker") == {
        "ada": (1.75, 0, 3, 3, 0),
        None: (0.375, 0.375, 4, 2, 0),
        "bob": (0, 0, 1, 1, 1),
        "cy": (0, 0, 1, 1, 1),
    }
    assert await sums(kept, "key") == {
        None: (1.25, 0.25, 1, 2, 0),
        "shop": (0.875, 0.125, 2, 4, 1),
        "lab": (0, 0, 1, 1, 1),
    }
    assert await sums(kept, "planner") == {
        "conductor": (1.875, 0.375, 3, 6, 2),
        "random": (0.25, 0, 1, 1, 0),
    }
    assert list((await sums(kept, "day")).items()) == [
        ("2026-03-01", (0.875, 0.125, 2, 4, 1)),
        ("2026-03-02", (1.25, 0.25, 1, 2, 0)),
        ("2026-03-31", (0, 0, 1, 1, 1)),
    ]
    for by in SPEND_BY:
        total = kept.spend(SpendQuery(FIRST, LAST, by)).total
        assert total.cost_usd == sum(trace.cost_usd for trace in traces[:4])
        assert (total.questions, total.calls, total.planning_usd, total.unpriced_calls) == (4, 7, 0.375, 2)


async def test_a_key_is_told_of_its_own_questions_alone(kept: TraceStore, make_trace: MakeTrace) -> None:
    for trace in questions(make_trace):
        kept.add(trace)
    kept.set_outcome("a", Outcome(right=True, at="2026-03-02T00:00:00Z"))
    kept.set_outcome("d", Outcome(right=False, at="2026-03-02T00:00:00Z"))
    assert await sums(kept, "key", "lab") == {"lab": (0, 0, 1, 1, 1)}
    for owner, judged in [
        ("lab", Accuracy(right=0, judged=1)),
        ("shop", Accuracy(right=1, judged=1)),
        ("", None),
        (None, Accuracy(right=1, judged=2)),
    ]:
        assert kept.spend(SpendQuery(FIRST, LAST, "planner", owner)).accuracy == judged


async def test_rewritten_trace_counts_once_with_its_latest_cost(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    for usd in (0.5, 0.25):
        kept.add(priced(make_trace, "a", step("ada", usd)))
        kept.add(priced(make_trace, "b", step("bob", usd)))
        assert (await sums(kept, "worker"))["ada"][0] == usd
    kept.delete("a")
    assert set(await sums(kept, "worker")) == {None, "bob"}
    kept.delete("b")
    assert await sums(kept, "worker") == {}


async def test_accuracy_counts_judged_traces_of_each_called_worker(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    for number in range(12):
        spans = [step("ada")] + [step("bob")] * (number < 4)
        kept.add(priced(make_trace, f"t{number}", *spans, owner="shop" if number % 2 else None))
        if number < 10:
            kept.set_outcome(f"t{number}", Outcome(right=number < 8, at="2026-03-02T00:00:00Z"))
    kept.set_outcome("t11", Outcome(note="?", at="2026-03-02T00:00:00Z"))
    by_worker = kept.spend(SpendQuery(FIRST, LAST, "worker"))
    assert {group.name: group.accuracy for group in by_worker.groups} == {
        None: Accuracy(right=8, judged=10),
        "ada": Accuracy(right=8, judged=10),
        "bob": Accuracy(right=4, judged=4),
    }
    by_key = kept.spend(SpendQuery(FIRST, LAST, "key"))
    assert {group.name: group.accuracy for group in by_key.groups} == {
        None: Accuracy(right=4, judged=5),
        "shop": Accuracy(right=4, judged=5),
    }
    assert by_worker.accuracy == by_key.accuracy == Accuracy(right=8, judged=10)


@pytest.mark.parametrize(("right", "judged"), [(8, 10), (0, 5), (5, 5), (50, 100), (1, 1)])
def test_the_interval_holds_the_shares_that_the_score_test_does_not_reject(right: int, judged: int) -> None:
    """At its ends the observed share is 1.96 standard errors of the end away, which is Wilson's definition."""
    accuracy = Accuracy(right=right, judged=judged)
    for end in (accuracy.low, accuracy.high):
        if 0 < end < 1:
            error = math.sqrt(end * (1 - end) / judged)
            assert abs(accuracy.mean - end) == pytest.approx(1.959964 * error)
    assert 0 <= accuracy.low <= accuracy.mean <= accuracy.high <= 1


def test_days_in_the_wrong_order_and_too_many_are_refused() -> None:
    for last, message in [
        (date(2026, 2, 28), "the last day is before the first"),
        (date(2030, 1, 1), "1,403 days"),
    ]:
        with pytest.raises(UsageError, match=message):
            SpendQuery(FIRST, last)
