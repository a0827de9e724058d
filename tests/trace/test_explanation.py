"""Why this answer: every figure is computed again here from the trace, and none stands without its source."""

from __future__ import annotations

import pytest

from podium.trace import Plan, Reply, RoundTrace, Span, Trace
from podium.trace.explanation import explain_answer
from podium.types import Price, Profile, Question, Rating, Spent, Usage
from podium.workflow import Acceptance, Step, Workflow, render

PLAN = Workflow((Step(0, "Answer it."),))
CHEAP = Profile(name="cheap", price=Price(input=1, output=2))
DEAR = Profile(name="dear", price=Price(input=10, output=40))


def rated(profile: Profile, accuracy: float, cost_usd: float = 0.01) -> Profile:
    rating = Rating(cluster="sums", accuracy=accuracy, cost_usd=cost_usd, questions=8)
    return profile.model_copy(update={"rating": rating})


def trace(*pool: Profile, thought: str = "", answer: str | None = "42") -> Trace:
    usage = Usage(input_tokens=900, output_tokens=50)
    span = Span(
        position=0, worker="cheap", subtask="", status="done", reply=Reply(answer, usage), spent=Spent(usage, 0.5),
        answered_by="vet",
    )  # fmt: skip
    planned = RoundTrace(plan=Plan(thought + render(PLAN), PLAN, Spent(cost_usd=0.25)), spans=(span,))
    accepted = RoundTrace(plan=Plan("Good.\nmodel_id = []", Acceptance()))
    return Trace(
        id="0" * 32, question=Question(text="x" * 401), pool=pool, planner="conductor", seed="0", status="ok",
        rounds=(planned, accepted), answer=answer, started_at="2026-01-01T00:00:00+00:00", seconds=1.0,
    )  # fmt: skip


def test_the_best_rated_worker_is_priced_by_tokens_of_question_and_answer() -> None:
    found = explain_answer(trace(rated(DEAR, 0.7), rated(CHEAP, 0.9), thought="Cheap knows sums.\n"))
    assert found.reason == "Cheap knows sums."
    assert found.cost_usd == 0.75
    assert [worker.worker for worker in found.ratings] == ["cheap", "dear"]
    assert found.single is not None
    assert found.single.worker == "cheap"
    assert found.single.cost_usd is not None
    assert found.single.cost_usd.value == pytest.approx((101 * 1 + 50 * 2) / 1e6)
    assert "101 in" in found.single.cost_usd.source
    assert "as many as vet wrote in step 0" in found.single.cost_usd.source
    assert found.single.accuracy is not None
    assert found.single.accuracy.value == 0.9
    assert "8 measured questions of the kind 'sums'" in found.single.accuracy.source
    assert found.runner_up is not None
    assert found.runner_up.worker == "dear"


def test_without_ratings_the_dearest_worker_is_priced_and_none_is_right() -> None:
    found = explain_answer(trace(CHEAP, DEAR))
    assert found.single is not None
    assert (found.single.worker, found.single.accuracy, found.single.measured_usd) == ("dear", None, None)
    assert "No worker has a rating" in found.single.choice
    assert (found.ratings, found.runner_up, found.reason) == ((), None, None)


def test_explanation_omits_prices_without_a_source() -> None:
    assert explain_answer(trace(Profile(name="free"))).single is None
    single = explain_answer(trace(rated(Profile(name="free"), 0.5))).single
    assert single is not None
    assert single.cost_usd is None
    unanswered = explain_answer(trace(CHEAP, answer=None)).single
    assert unanswered is not None
    assert unanswered.cost_usd is None
