"""How long the first token of an answer takes."""

import pytest

from evals.graded_evaluations import column, graded
from podium.trace import Plan, Reply, RoundTrace, Span
from podium.types import NO_USAGE
from podium.workflow import Acceptance, Step, Workflow
from podium_research.measures.first_token import first_token_s

PLAN = Workflow(tuple(Step(0, "Do it.") for _ in range(4)))


def _span(position: int, seconds: float, *, reads=(), first: float | None = None) -> Span:
    return Span(
        position=position,
        worker="a",
        subtask="Do it.",
        reads=reads,
        status="done",
        reply=Reply("", NO_USAGE, latency_s=seconds, cached=True, first_token_s=first),
    )


def _trace(*rounds: RoundTrace):
    trace = graded("made", column(True)).rollouts[0].trace
    return trace.model_copy(update={"rounds": rounds, "answer": "4"})


def test_the_first_token_waits_for_planning_and_the_steps_it_reads():
    steps = (
        _span(0, 5.0),
        _span(1, 2.0),
        _span(2, 1.0, reads=(1,)),
        _span(3, 9.0, reads=(2,), first=0.5),
    )
    once = RoundTrace(plan=Plan("...", PLAN, seconds=0.25), spans=steps)
    assert first_token_s(_trace(once)) == pytest.approx(0.25 + 2 + 1 + 0.5)
    before = RoundTrace(plan=Plan("...", PLAN, seconds=1.0), spans=(_span(0, 4.0),))
    assert first_token_s(_trace(before, once)) == pytest.approx(1 + 4 + 3.75)


def test_first_token_of_an_answer_accepted_later_comes_with_acceptance():
    first = RoundTrace(plan=Plan("...", PLAN, seconds=1.0), spans=(_span(0, 4.0, first=0.5),))
    accepted = RoundTrace(plan=Plan("...", Acceptance(), seconds=2.0))
    assert first_token_s(_trace(first, accepted)) == pytest.approx(1 + 4 + 2)


def test_first_token_time_is_unknown_without_streaming():
    assert first_token_s(_trace(RoundTrace(plan=Plan("...", PLAN), spans=(_span(0, 4.0),)))) is None
