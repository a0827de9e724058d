"""What users said about answers, in every store: kept with the trace, listed, filtered, exported, deleted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from podium.errors import UnknownTraceError
from podium.store import TraceStore
from podium.store.query import OutcomeFilter, TraceFilters
from podium.trace import Outcome, Trace
from podium.trace.serialization import read_jsonl

MakeTrace = Callable[..., Trace]
RIGHT = Outcome(right=True, at="2026-03-02T00:00:00+00:00")
WRONG = Outcome(right=False, note="It is \0 7 \ud800.", by="ada", at="2026-03-02T00:00:00+00:00")
NOTE = Outcome(note="Ask Bob.", at="2026-03-02T00:00:00+00:00")


async def passing(store: TraceStore, outcome: OutcomeFilter, owner: str | None = None) -> str:
    page = store.page(TraceFilters(outcome=outcome, owner=owner))
    assert page.total == len(page.traces)
    return "".join(row.id for row in page.traces)


async def test_an_outcome_is_kept_listed_filtered_and_exported(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    for id_ in "abcd":
        kept.add(make_trace(id_, owner="ada" if id_ < "c" else None))
    assert kept.set_outcome("a", RIGHT).outcome == RIGHT
    kept.set_outcome("b", WRONG)
    kept.set_outcome("c", NOTE)
    assert kept.get("a") == make_trace("a", owner="ada", outcome=RIGHT)
    stored = kept.get("b").outcome
    assert stored == WRONG.model_copy(update={"note": "It is \0 7 ?."})
    assert [row.outcome for row in kept.page(TraceFilters()).traces] == [
        None,
        "note",
        "wrong",
        "right",
    ]
    for outcome, found in [("right", "a"), ("wrong", "b"), ("note", "c"), ("none", "d")]:
        assert await passing(kept, outcome) == found
    assert await passing(kept, "wrong", owner="ada") == "b"
    assert await passing(kept, "none", owner="ada") == ""
    exported = list(kept.export(TraceFilters(outcome="right")))
    assert [json.loads(line)["outcome"]["right"] for line in exported] == [True]
    (trace,) = read_jsonl(exported, "export")
    kept.add(trace.model_copy(update={"id": "e"}))
    assert await passing(kept, "right") == "ea"


async def test_an_outcome_is_replaced_taken_back_and_deleted_with_its_trace(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    kept.add(make_trace("a"))
    kept.set_outcome("a", RIGHT)
    kept.set_outcome("a", WRONG)
    assert (await passing(kept, "right"), await passing(kept, "wrong")) == ("", "a")
    assert kept.set_outcome("a", None) == make_trace("a") == kept.get("a")
    assert await passing(kept, "none") == "a"
    kept.set_outcome("a", RIGHT)
    assert kept.delete("a")
    assert await passing(kept, "right") == ""
    with pytest.raises(UnknownTraceError):
        kept.set_outcome("a", RIGHT)


async def test_an_outcome_of_a_plan_does_not_replace_the_answer_of_its_run(
    kept: TraceStore, make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = make_trace("a")

    def found(prefix: str, owner: str | None = None) -> Trace:
        return ran.model_copy(update={"status": "planned", "answer": None})

    kept.add(ran)
    kept.flush()
    with monkeypatch.context() as earlier:
        earlier.setattr(kept, "get", found)
        with pytest.raises(UnknownTraceError):
            kept.set_outcome("a", RIGHT)
    assert kept.get("a") == ran


async def test_only_callers_who_see_a_trace_can_set_its_outcome(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    kept.add(make_trace("a", owner="ada"))
    with pytest.raises(UnknownTraceError):
        kept.set_outcome("a", WRONG, "bob")
    assert kept.get("a").outcome is None
    assert kept.set_outcome("a", RIGHT, "ada").outcome == RIGHT
