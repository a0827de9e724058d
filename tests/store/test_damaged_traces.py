"""A trace whose values do not fit together is refused at the door; a damaged row hides no others, in both databases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from podium.errors import UsageError
from podium.store import TraceStore
from podium.store.query import TraceFilters
from podium.trace.serialization import MAX_TRACE_NUMBER, read_jsonl, to_json
from podium.types import AnswerOptions, Question

SPAN = ("rounds", 0, "spans", 1)
STEP = ("rounds", 0, "plan", "decision", "steps", 1)
FLAWS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("seconds",), float("nan"), "seconds is nan"),
    (("seconds",), float("inf"), "seconds is inf"),
    (("seconds",), -1.0, "seconds is -1"),
    (("rounds", 0, "plan", "spent", "cost_usd"), float("-inf"), "rounds.0.plan.spent.cost_usd is -inf"),
    ((*SPAN, "spent", "cost_usd"), -0.5, "rounds.0.spans.1.spent.cost_usd is -0.5"),
    ((*SPAN, "spent", "cost_usd"), 1e300, "rounds.0.spans.1.spent.cost_usd is 1e+300"),
    (
        (*SPAN, "reply", "usage", "output_tokens"),
        10**30,
        "rounds.0.spans.1.reply.usage.output_tokens is too large",
    ),
    ((*SPAN, "reply", "usage", "input_tokens"), -3, "rounds.0.spans.1.reply.usage.input_tokens is -3"),
    ((*SPAN, "attempts", 0, "ended_s"), float("nan"), "rounds.0.spans.1.attempts.0.ended_s is nan"),
    (
        (*SPAN, "reply", "parameters"),
        {"top_p": float("nan")},
        "rounds.0.spans.1.reply.parameters.top_p is nan",
    ),
    ((*SPAN, "reply", "logprobs"), {"content": [{"logprob": float("-inf")}]}, "logprob is -inf"),
    (("pool", 0, "latency_s"), float("nan"), "pool.0.latency_s is nan"),
    (("budget",), {"usd": float("inf")}, "budget.usd is inf"),
    (("started_at",), "yesterday", "started_at is no date: 'yesterday'"),
    (("started_at",), "2026-02-30T00:00:00+00:00", "started_at is no date"),
    (("started_at",), "0001-01-01T00:00:00+23:00", "started_at is no date"),
    (("started_at",), "9999-12-31T23:59:59-23:00", "started_at is no date"),
    (("started_at",), "", "started_at is no date"),
    (("outcome",), {"right": True, "at": "soon"}, "outcome.at is no date: 'soon'"),
    (("id",), " ", "id is empty"),
    ((*SPAN, "position"), 7, "rounds.0.spans.1.position is 7, and the plan has 2 steps"),
    ((*SPAN, "position"), -1, "rounds.0.spans.1.position is -1"),
    ((*SPAN, "position"), 0, "rounds.0.spans.1.position is 0, as in another span"),
    ((*SPAN, "reads"), [1], "rounds.0.spans.1.reads names step 1, which is no earlier one"),
    ((*SPAN, "reads"), [-1], "rounds.0.spans.1.reads"),
    ((*SPAN, "waited"), [9], "rounds.0.spans.1.waited names a step"),
    ((*STEP, "worker"), 9, "rounds.0.plan.decision.steps.1.worker is 9, and the pool has 2 workers"),
    ((*STEP, "worker"), -1, "rounds.0.plan.decision.steps.1.worker is -1"),
    ((*STEP, "access"), {"steps": [1]}, "rounds.0.plan.decision.steps.1.access names step 1"),
]


def changed(trace: Any, path: tuple[str | int, ...], value: Any) -> str:
    document = json.loads(to_json(trace))
    *keys, last = path
    within = document
    for key in keys:
        within = within[key]
    within[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(("path", "value", "said"), FLAWS)
def test_a_trace_that_does_not_fit_together_is_refused_at_its_line(
    make_trace: Any, path: Any, value: Any, said: str, tmp_path: Path
) -> None:
    lines = [to_json(make_trace("good")), changed(make_trace("bad"), path, value)]
    with TraceStore(tmp_path / "t.sqlite") as store:
        with pytest.raises(UsageError) as refused:
            store.add_all(read_jsonl(lines, "all.jsonl"))
        assert store.list() == ()
    assert str(refused.value).startswith("all.jsonl, line 2: not a trace")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_trace_of_a_nested_team_is_validated(make_trace: Any) -> None:
    inner = json.loads(to_json(make_trace("inner", seconds=-1.0)))
    line = changed(make_trace("outer"), (*SPAN, "reply", "nested"), inner)
    with pytest.raises(UsageError, match=r"rounds\.0\.spans\.1\.reply\.nested\.seconds is -1"):
        list(read_jsonl([line], "x"))


@pytest.mark.parametrize("depth", [40, 3000])
def test_teams_nested_too_deeply_are_refused(make_trace: Any, depth: int) -> None:
    document, end = to_json(make_trace()).split('"nested":null', 1)
    line = (document + '"nested":') * depth + "null" + end * depth
    with pytest.raises(UsageError, match="line 1: not a trace"):
        list(read_jsonl([line], "x"))


def test_logprobs_and_request_parameters_may_be_negative(make_trace: Any) -> None:
    line = changed(make_trace(), (*SPAN, "reply", "logprobs"), {"content": [{"logprob": -9999.0}]})
    line = changed(
        next(read_jsonl([line], "x")), (*SPAN, "reply", "parameters"), {"presence_penalty": -2, "seed": -7}
    )
    (trace,) = read_jsonl([line], "x")
    assert trace.spans[1].reply.parameters == {"presence_penalty": -2, "seed": -7}
    assert next(read_jsonl([changed(trace, ("seconds",), MAX_TRACE_NUMBER)], "x")).seconds == MAX_TRACE_NUMBER


@pytest.mark.parametrize("number", [9007199254740991, -(10**30), 1e300])
def test_numbers_of_callers_and_providers_may_have_any_size(make_trace: Any, number: float) -> None:
    options = AnswerOptions(tools=({"parameters": {"properties": {"n": {"maximum": number}}}},))
    trace = make_trace(question=Question(text="Q?", options=options))
    (read,) = read_jsonl([changed(trace, (*SPAN, "reply", "parameters"), {"seed": number})], "x")
    assert read.question == trace.question
    assert read.spans[1].reply.parameters == {"seed": number}


DAMAGES: list[Callable[[str], tuple[str, Any]]] = [
    lambda document: ("document", "{}"),
    lambda document: ("document", "not JSON"),
    lambda document: ("document", ""),
    lambda document: ("document", document.replace('"seconds":1.5', '"seconds":NaN')),
    lambda document: ("document", document.replace("2026-03-01", "2026-13-01")),
    lambda document: ("started", float("inf")),
    lambda document: ("started", 1e300),
    lambda document: ("seconds", float("inf")),
    lambda document: ("cost_usd", float("inf")),
    lambda document: ("status", "fine"),
    lambda document: ("outcome", "perhaps"),
]
ONLY_SQLITE: list[Callable[[str], tuple[str, Any]]] = [
    lambda document: ("document", document.encode("utf-16")),
    lambda document: ("document", None),
    lambda document: ("started", "yesterday"),
    lambda document: ("calls", "many"),
    lambda document: ("workers", "{"),
    lambda document: ("workers", "[1]"),
    lambda document: ("question", b"\xff\xfe"),
    lambda document: ("question", None),
]


async def damage(store: TraceStore, make_trace: Any, way: Callable[[str], tuple[str, Any]]) -> str:
    """Damage the row of the middle one of three traces; returns the damaged column."""
    for day in (1, 2, 3):
        store.add(make_trace(f"t{day}", started_at=f"2026-03-0{day}T10:00:00+00:00"))
    store.flush()
    column, value = way(to_json(make_trace("t2")))
    table = "podium_documents" if column == "document" else "traces"
    await store.database.run(
        text(f"UPDATE {table} SET {column} = :value WHERE id = 't2'").bindparams(value=value)
    )
    return column


async def check(store: TraceStore, column: str) -> None:
    page = store.page(TraceFilters())
    listed = {trace.id for trace in page.traces}
    assert {"t1", "t3"} <= listed
    assert len(listed) + page.damaged == 3
    pages, cursor = [], None
    while True:
        one = store.page(TraceFilters(), cursor, 1)
        pages += [trace.id for trace in one.traces]
        cursor = one.next
        if cursor is None:
            break
    assert {"t1", "t3"} <= set(pages)
    exported = [json.loads(line)["id"] for line in store.export(TraceFilters())]
    assert {"t1", "t3"} <= set(exported)
    assert {trace.id for trace in store.newest(3)} >= {"t1", "t3"}
    if column == "document":
        assert "t2" not in exported
        with pytest.raises(UsageError, match="The trace t2 is damaged"):
            store.get("t2")
    assert store.get("t3").id == "t3"
    assert store.delete("t2")


@pytest.mark.parametrize("way", DAMAGES)
async def test_a_damaged_row_hides_no_others(
    kept: TraceStore, make_trace: Any, way: Callable[[str], tuple[str, Any]]
) -> None:
    await check(kept, await damage(kept, make_trace, way))


@pytest.mark.parametrize("way", [*DAMAGES, *ONLY_SQLITE])
async def test_a_damaged_row_of_a_file_hides_no_others_from_commands(
    make_trace: Any, way: Callable[[str], tuple[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "t.sqlite"
    served = TraceStore(path)
    column = await damage(served, make_trace, way)
    with TraceStore(path) as store:
        listed = [summary.id for summary in store.list()]
        assert set(listed) >= {"t1", "t3"}
        assert len(listed) + store.damaged == 3
        assert {summary.id for summary in store.list(limit=2)} <= {"t1", "t2", "t3"}
        assert {trace.id for trace in store.iterate()} >= {"t1", "t3"}
        assert store.get("t3").id == "t3"
        if column == "document":
            assert store.damaged == 1
            with pytest.raises(UsageError, match="The trace t2 is damaged"):
                store.get("t2")
    await check(served, column)
    served.close()


def test_trace_with_invalid_utf8_hides_no_other_traces(make_trace: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with TraceStore(path) as store:
        store.add_all([make_trace("t1"), make_trace("t2")])
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE podium_documents SET document = CAST(x'ff7b7d' AS TEXT) WHERE id = 't2'")
        file.execute("UPDATE traces SET question = CAST(x'ff41' AS TEXT) WHERE id = 't2'")
    with TraceStore(path) as store:
        assert {summary.id for summary in store.list()} == {"t1", "t2"}
        assert [trace.id for trace in store.iterate()] == ["t1"]
