"""What a store knows of past answers: the newest, by who answered, and no copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.executor.plan_estimate import PastAnswers, past_answers_in
from podium.store import TraceStore
from podium.trace import Plan, Reply, RoundTrace, Span
from podium.types import Usage
from podium.workflow import Acceptance
from sample_traces import build_trace


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., Path]:
    """`keep([spans of a trace], ...)`: the store, the last trace the newest."""

    def make(*answered: list[Span]) -> Path:
        with TraceStore(tmp_path / "traces.sqlite") as store:
            for number, spans in enumerate(answered):
                store.add(
                    build_trace(
                        f"t{number}",
                        started_at=f"2026-03-01T10:00:{number:02}+00:00",
                        rounds=(
                            RoundTrace(
                                plan=Plan("", Acceptance()),
                                spans=tuple(
                                    span.model_copy(update={"position": position})
                                    for position, span in enumerate(spans)
                                ),
                            ),
                        ),
                    )
                )
        return tmp_path / "traces.sqlite"

    return make


def read_past_answers(store: Path, newest: int = 200) -> Mapping[str, PastAnswers]:
    with TraceStore(store, read_only=True) as traces:
        return past_answers_in(traces.newest(newest))


def span(tokens: int, worker: str = "ada", **changes: object) -> Span:
    values: dict[str, object] = {
        "position": 0,
        "worker": "asked",
        "answered_by": worker,
        "subtask": "Add.",
        "status": "done",
        "reply": Reply("5", Usage(output_tokens=tokens)),
        "started_s": 1.0,
        "ended_s": 3.5,
    }
    return Span.model_validate(values | changes)


def test_past_answers_are_grouped_by_the_answering_worker(keep: Callable[..., Path]) -> None:
    store = keep(
        [span(10), span(20, "bob", reply=Reply("5", Usage(output_tokens=20), latency_s=0.5))], [span(30)]
    )
    assert read_past_answers(store) == {
        "ada": PastAnswers((30, 10), (2.5, 2.5)),
        "bob": PastAnswers((20,), (0.5,)),
    }


def test_failed_and_cached_steps_are_no_past_answers(keep: Callable[..., Path]) -> None:
    store = keep(
        [
            span(10, reply=Reply("5", Usage(output_tokens=10), cached=True)),
            span(20, status="failed", answered_by=None),
            span(30, status="cancelled", answered_by=None),
            span(40),
        ],
        [],
    )
    assert read_past_answers(store) == {"ada": PastAnswers((40,), (2.5,))}


def test_only_the_newest_traces_count(keep: Callable[..., Path]) -> None:
    store = keep([span(1)], [span(2)], [span(3)])
    assert read_past_answers(store, newest=2)["ada"].output_tokens == (3, 2)


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("These are notes, and no database, at some length. " * 10)
    with pytest.raises(UsageError, match="cannot be opened"):
        read_past_answers(tmp_path / "notes.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_reading_leaves_nothing_behind(keep: Callable[..., Path]) -> None:
    store = keep([span(1)])
    before = store.read_bytes()
    read_past_answers(store)
    assert store.read_bytes() == before
