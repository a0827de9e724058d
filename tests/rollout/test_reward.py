"""The reward keeps its order whatever was spent, and its parts apart."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.rollout import PENALTY_CAP, Reward, RewardSettings, Rollout
from podium.rollout import reward as reward_of
from podium.tasks.task import Grade
from podium.trace import Attempt, Plan, Reply, RoundTrace, Span, Trace
from podium.types import NO_USAGE, Question, Spent
from podium.workflow import Acceptance, PlanError, Step, Workflow

WEIGHTS = st.builds(
    RewardSettings,
    cost=st.floats(0, 1e6),
    calls=st.floats(0, 1e6),
    latency=st.floats(0, 1e6),
)
SPENT = st.tuples(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(0, 5))


NO_PLAN = PlanError("no_plan", "There is no list.")


def trace(cost: float = 0.0, seconds: float = 0.0, calls: int = 1, *, readable: bool = True) -> Trace:
    spans = tuple(
        Span(
            position=position,
            worker="w",
            subtask="Do it.",
            reads=tuple(range(position)),
            status="done",
            spent=Spent(cost_usd=cost / calls),
            reply=Reply("Answer: 1", NO_USAGE, latency_s=seconds / calls),
            attempts=(Attempt(worker="w", started_s=0, ended_s=0),),
        )
        for position in range(calls)
    )
    workflow = Workflow(tuple(Step(0, "Do it.") for _ in range(max(1, calls))))
    round_ = RoundTrace(plan=Plan("...", workflow if readable else NO_PLAN), spans=spans)
    return Trace(
        id="0" * 32,
        question=Question(text="?"),
        pool=(),
        planner="written",
        seed="0",
        rounds=(round_,),
        status="ok",
        started_at="2026-01-01T00:00:00Z",
        seconds=0.0,
    )


def reward(trace: Trace, grade: Grade, settings: RewardSettings) -> Reward:
    found = reward_of(Rollout(task="t", sample=0, grade=grade, trace=trace), settings)
    assert found is not None
    return found


@given(WEIGHTS, SPENT, SPENT)
def test_right_is_above_wrong_is_above_unreadable_whatever_was_spent(settings, of_right, of_wrong):
    right = reward(trace(*of_right), Grade(1.0), settings)
    wrong = reward(trace(*of_wrong), Grade(0.0), settings)
    unreadable = reward(trace(readable=False), Grade(0.0), settings)
    assert 1 >= right.total > 0.5 >= wrong.total > unreadable.total == 0


@given(WEIGHTS.filter(lambda weights: weights.calls > 1e-6), st.booleans())
def test_reward_never_grows_with_spending(settings, correct):
    grade = Grade(float(correct))
    cheap = reward(trace(0.1, 1.0, 1), grade, settings)
    dear = reward(trace(0.2, 2.0, 2), grade, settings)
    assert cheap.total > dear.total or cheap.penalty == dear.penalty == PENALTY_CAP


def test_without_weights_the_reward_is_that_of_the_paper():
    settings = RewardSettings()
    assert reward(trace(9, 9, 3), Grade(1.0), settings).total == 1
    assert reward(trace(9, 9, 3), Grade(0.0), settings).total == 0.5
    assert reward(trace(readable=False), Grade(1.0), settings).total == 0


def test_the_components_are_kept_apart():
    found = reward(trace(0.02, 3.0, 2), Grade(1.0), RewardSettings(cost=1.0, calls=0.01, latency=0.001))
    assert found == Reward(format=0.5, correct=0.5, cost=0.02, calls=0.02, latency=0.003)
    assert abs(found.total - 0.957) < 1e-12


READ_AGAIN = trace().rounds[0]
ACCEPTED = RoundTrace(plan=Plan("...", Acceptance()))
UNREADABLE = RoundTrace(plan=Plan("?", NO_PLAN))
TOO_LATE = RoundTrace(plan=Plan("", PlanError("time_is_up", "Time is up.")))


def rounds(*later: RoundTrace) -> Trace:
    first = trace()
    return first.model_copy(update={"rounds": (*first.rounds, *later)})


@pytest.mark.parametrize(
    ("later", "share"),
    [
        ((ACCEPTED,), 1),
        ((READ_AGAIN, ACCEPTED), 1),
        ((TOO_LATE,), 1),
        ((UNREADABLE,), 1 / 2),
        ((READ_AGAIN, UNREADABLE), 2 / 3),
    ],
)
def test_an_unreadable_plan_of_a_later_round_earns_less_than_an_acceptance(
    later: tuple[RoundTrace, ...], share: float
) -> None:
    for score, correct in ((1.0, 0.5), (0.0, 0.0)):
        found = reward(rounds(*later), Grade(score), RewardSettings())
        assert found.format == pytest.approx(0.5 * share)
        assert found.total == pytest.approx(correct + 0.5 * share)


@given(WEIGHTS, st.lists(st.sampled_from([READ_AGAIN, UNREADABLE]), max_size=4))
def test_right_is_above_wrong_whatever_is_unreadable_later(
    settings: RewardSettings, later: list[RoundTrace]
) -> None:
    right = reward(rounds(*later), Grade(1.0), settings)
    assert right.total > 0.5 >= reward(trace(), Grade(0.0), settings).total
    assert reward(rounds(*later), Grade(0.0), settings).total > 0


def test_half_a_score_is_not_right():
    assert reward(trace(), Grade(0.5), RewardSettings()).correct == 0


def test_a_cached_answer_is_rewarded_as_if_it_had_been_paid_for():
    settings = RewardSettings(cost=1.0, calls=0.01, latency=0.001)
    paid = trace(0.02, 3.0, 2)
    spans = tuple(
        span.model_copy(
            update={
                "reply": replace(span.reply, cached=True),
                "spent": Spent(saved_usd=span.spent.cost_usd),
                "attempts": (),
            }
        )
        for span in paid.spans
    )
    cached = paid.model_copy(update={"rounds": (paid.rounds[0].model_copy(update={"spans": spans}),)})
    assert cached.cost_usd == 0
    assert reward(cached, Grade(1.0), settings) == reward(paid, Grade(1.0), settings)


def test_the_latency_penalty_leaves_out_our_own_queue_and_retries():
    """The call waited 60 s for its rate limit, failed, waited again, and was then answered within 2 s."""
    attempts = (
        Attempt(worker="w", started_s=60.0, ended_s=61.0, error_kind="status", error="Overloaded."),
        Attempt(worker="w", started_s=98.0, ended_s=100.0),
    )
    span = Span(
        position=0,
        worker="w",
        subtask="Do it.",
        status="done",
        started_s=0.0,
        ended_s=100.0,
        attempts=attempts,
    )
    quiet = trace()
    queued = quiet.model_copy(update={"rounds": (quiet.rounds[0].model_copy(update={"spans": (span,)}),)})
    assert reward(queued, Grade(1.0), RewardSettings(latency=0.01)).latency == 0.02
    assert span.seconds == 100.0
