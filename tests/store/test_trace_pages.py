"""Pages of filtered traces: nothing is lost or doubled, and no page reads more than its share of a large store."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from podium.store import TraceStore
from podium.store.query import SelectBuilder, TraceFilters, TracePage
from podium.trace import Outcome, Plan, RoundTrace, Span, Trace
from podium.types import Spent
from podium.workflow import Acceptance

MakeTrace = Callable[..., Trace]


def worked(name: str, usd: float = 0.0) -> tuple[RoundTrace, ...]:
    span = Span(
        position=0, worker=name, subtask="Add.", status="done", answered_by=name, spent=Spent(cost_usd=usd)
    )
    return (RoundTrace(plan=Plan("", Acceptance()), spans=(span,)),)


async def pages(store: TraceStore, filters: TraceFilters, limit: int) -> list[TracePage]:
    found = [store.page(filters, None, limit)]
    while found[-1].next is not None:
        found.append(store.page(filters, found[-1].next, limit))
    return found


async def test_pages_of_partial_scans_list_each_trace_once(
    kept: TraceStore, make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.store.query.MAX_SCANNED", 4)
    made = []
    for number, (owner, planner, status, worker) in enumerate(
        product(("shop", "home"), ("conductor", "random"), ("ok", "failed"), ("ada", "bob"))
    ):
        verdict = Outcome(right=number % 2 == 0, at="2026-03-04T00:00:00Z") if number % 3 else None
        trace = make_trace(
            f"{number:02}", started_at=f"2026-03-{1 + number // 2:02}T00:00:00Z", owner=owner, planner=planner,
            status=status, rounds=worked(worker, number / 100), text=f"number {number % 5}", outcome=verdict,
        )  # fmt: skip
        made.append(trace)
        kept.add(trace)
    newest = made[::-1]
    passing: dict[str, tuple[object, Callable[[Trace], bool]]] = {
        "owner": ("shop", lambda trace: trace.owner == "shop"),
        "planner": ("random", lambda trace: trace.planner == "random"),
        "status": ("failed", lambda trace: trace.status == "failed"),
        "worker": ("bob", lambda trace: trace.spans[0].worker == "bob"),
        "outcome": ("right", lambda trace: trace.outcome is not None and trace.outcome.verdict == "right"),
        "min_cost": (0.05, lambda trace: trace.cost_usd >= 0.05),
        "q": ("number 3", lambda trace: trace.question.text == "number 3"),
    }
    for names in (*combinations(passing, 1), *combinations(passing, 2), ("owner", "worker", "outcome")):
        filters = TraceFilters(**{name: passing[name][0] for name in names})  # type: ignore[arg-type]
        expected = [trace.id for trace in newest if all(passing[name][1](trace) for name in names)]
        for limit in (1, 5):
            found = await pages(kept, filters, limit)
            assert [row.id for page in found for row in page.traces] == expected, filters
            assert found[0].total in (None, len(expected))


async def test_empty_page_has_a_cursor_to_read_on(
    kept: TraceStore, make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.store.query.MAX_SCANNED", 3)
    for number in range(7):
        text = "needle" if number == 0 else "hay"
        kept.add(make_trace(f"t{number}", started_at=f"2026-03-0{1 + number}T00:00:00Z", text=text))
    found = await pages(kept, TraceFilters(q="needle"), 50)
    assert [[row.id for row in page.traces] for page in found] == [[], [], ["t0"]]
    assert [page.total for page in found] == [None, None, None]
    # What is added meanwhile must not make the next page repeat a trace.
    first = kept.page(TraceFilters(q="hay"), None, 3)
    kept.add(make_trace("t9", started_at="2026-03-09T00:00:00Z", text="hay"))
    second = kept.page(TraceFilters(q="hay"), first.next, 3)
    assert [row.id for row in (*first.traces, *second.traces)] == ["t6", "t5", "t4", "t3", "t2", "t1"]


async def test_a_replaced_or_deleted_trace_is_not_found_by_its_workers(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    kept.add(make_trace("a", rounds=worked("ada")))
    kept.flush()
    kept.add(make_trace("a", rounds=worked("bob"), started_at="2026-03-02T00:00:00Z"))
    for worker, ids in [("ada", []), ("bob", ["a"])]:
        assert [row.id for row in kept.page(TraceFilters(worker=worker)).traces] == ids
    assert kept.delete("a")
    assert kept.page(TraceFilters(worker="bob")).total == 0


@pytest.mark.parametrize(
    "filters",
    [
        TraceFilters(),
        TraceFilters(owner="shop"),
        TraceFilters(planner="random"),
        TraceFilters(status="failed"),
        TraceFilters(outcome="wrong"),
        TraceFilters(worker="ada"),
        TraceFilters(worker="ada", q="sum"),
        TraceFilters(min_cost=1.0, q="sum"),
    ],
)
async def test_sqlite_reads_a_page_from_an_index_without_sorting(
    tmp_path: Path, filters: TraceFilters
) -> None:
    path = tmp_path / "traces.sqlite"
    TraceStore(path).close()
    cursor = "WzE3NzIzNTkyMDAuMCwgImEiXQ"
    made = SelectBuilder(filters)
    statements = [made.page(None, 50), made.page(cursor, 50), made.count(), made.end_of_scan(cursor)]
    with create_engine(f"sqlite:///{path}").connect() as file:
        for statement in statements:
            if statement is None:
                continue
            text = str(statement.compile(file, compile_kwargs={"literal_binds": True}))
            steps = [row[3] for row in file.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
            if "SCAN found" in steps:  # The traces of the page are sorted again, once they are found.
                steps = steps[: steps.index("SCAN found")]
            assert not [step for step in steps if "TEMP B-TREE" in step], steps
            assert made.index is None or any(f"({made.index}=?" in step for step in steps), steps
