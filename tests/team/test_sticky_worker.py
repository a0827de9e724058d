"""When the next turn of a conversation keeps its worker: sums by hand, and the plans that come of them."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from podium.planners.planner import EarlierRound, PlanRequest, PrewrittenPlans
from podium.team.sticky_worker import PastTurn, StickyWorkerPlanner, switching_loss_usd
from podium.trace import Plan
from podium.types import Message, Price, Profile, Question, Rating
from podium.workflow import Acceptance, Access, Step, Workflow, render

LARGE = Profile(name="large", price=Price(input=10.0, output=30.0, cached_input=1.0))
MEDIUM = Profile(name="medium", price=Price(input=3.0, output=12.0))
WARM = Profile(name="warm", price=Price(input=3.0, output=12.0, cached_input=0.3))
WRITER = Profile(name="writer", price=Price(input=3.0, output=12.0, cached_input=0.3, cache_write=3.75))
SMALL = Profile(name="small", price=Price(input=0.5, output=2.0))
HUGE = Profile(name="huge", price=Price(input=20.0, output=60.0))
FREE = Profile(name="free")


def rated(profile: Profile, accuracy: float) -> Profile:
    rating = Rating(cluster="sums", accuracy=accuracy, cost_usd=0.01, questions=100)
    return profile.model_copy(update={"rating": rating})


class Move(NamedTuple):
    """From one worker to another, and what it loses in dollars."""

    kept: Profile
    chosen: Profile
    loss: float
    cached: dict[str, int] | None = None
    """Tokens of the conversation that caches of other workers hold."""


# The next turn has 10,000 tokens, of which the large model's cache holds 8,000, and its answer has 100 tokens.
# Staying costs 2,000 at $10, 8,000 at $1 and 100 at $30 for a million: 0.020 + 0.008 + 0.003 = $0.031.
MOVES = [
    # 10,000 at $3 and 100 at $12: $0.0312.
    Move(LARGE, MEDIUM, 0.0002),
    # 10,000 at $3.75, since it writes them into its cache: $0.0387.
    Move(LARGE, WRITER, 0.0077),
    # Its cache holds 5,000 too: 5,000 at $3, 5,000 at $0.3, and the answer: $0.0177.
    Move(LARGE, WARM, 0.0, cached={"warm": 5000}),
    # 10,000 at $0.5 and 100 at $2: $0.0052.
    Move(LARGE, SMALL, 0.0),
    Move(LARGE, FREE, 0.0),
    # $0.206, but it was dearer from the start, and without ratings only the planner knows what for.
    Move(LARGE, HUGE, 0.0),
    Move(rated(LARGE, 0.8), HUGE, 0.0),
    # Ratings say what for.
    Move(rated(LARGE, 0.8), rated(HUGE, 0.8), 0.175),
    Move(rated(LARGE, 0.8), rated(HUGE, 0.7), 0.175),
    Move(rated(LARGE, 0.8), rated(HUGE, 0.81), 0.0),
    Move(rated(LARGE, 0.8), rated(SMALL, 0.1), 0.0),
]


@pytest.mark.parametrize("move", MOVES)
def test_switching_loss_is_the_extra_cost_of_a_move_without_gain(move: Move) -> None:
    past = PastTurn("large", 100, {"large": 8000, **(move.cached or {})})
    loss = switching_loss_usd(move.kept, move.chosen, past, 10_000)
    assert loss == pytest.approx(move.loss, abs=1e-9)


def fixed(decision: Workflow | Acceptance) -> PrewrittenPlans:
    """A planner with one plan."""
    return PrewrittenPlans((Plan(render(decision), decision),))


TWO_STEPS = Workflow((Step(1, "Draft."), Step(1, "Answer.", Access(all=True))))
HISTORY = (Message(role="user", content="long " * 10_000), Message(role="assistant", content="Yes."))
ASKED = PlanRequest(Question(text="Why?", history=HISTORY), (LARGE, MEDIUM, FREE))


async def test_only_the_last_step_is_kept_and_the_reason_says_why() -> None:
    past = PastTurn("large", 500, {"large": 12_400})
    plan = await StickyWorkerPlanner(fixed(TWO_STEPS), past).plan(ASKED)
    assert plan.decision == Workflow((Step(1, "Draft."), Step(0, "Answer.", Access(all=True))))
    assert plan.text == render(TWO_STEPS), "as the planner wrote it"
    # 12,502 tokens: 102 at $10 and 12,400 at $1 and the answer at $30, against all at $3 and the answer at $12.
    assert plan.reason == (
        "Kept with large: its prompt cache holds 12,400 tokens of the conversation, and medium would cost "
        "$0.0151 more."
    )


@pytest.mark.parametrize(
    ("decision", "past", "request_"),
    [
        (TWO_STEPS, PastTurn("medium", 9, {"large": 12_400}), ASKED),
        (TWO_STEPS, PastTurn("gone", 9, {"gone": 12_400}), ASKED),
        (TWO_STEPS, PastTurn("large", 9, {"large": 1023}), ASKED),
        (TWO_STEPS, PastTurn("large", 9, {}), ASKED),
        (Workflow((Step(2, "Count the votes."),)), PastTurn("large", 9, {"large": 12_400}), ASKED),
        (Acceptance(), PastTurn("large", 9, {"large": 12_400}), ASKED),
        (
            TWO_STEPS,
            PastTurn("large", 9, {"large": 12_400}),
            PlanRequest(ASKED.question, ASKED.pool, (EarlierRound(TWO_STEPS, "No."),)),
        ),
    ],
    ids=["stays", "gone", "too short", "cold", "free tool", "acceptance", "later round"],
)
async def test_sticky_planner_does_not_change_other_plans(
    decision: Workflow | Acceptance, past: PastTurn, request_: PlanRequest
) -> None:
    plan = await StickyWorkerPlanner(fixed(decision), past).plan(request_)
    assert (plan.decision, plan.reason) == (decision, None)
