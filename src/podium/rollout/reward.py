"""The reward of one rollout, with its components (the paper, section 3.2).

It is a pure function of a trace and a grade. `rollout` runs and grades.
"""

from __future__ import annotations

from pydantic import Field

from podium.config import Settings
from podium.tasks.task import Grade
from podium.trace import RoundTrace, Trace
from podium.types import FrozenModel

WRONG_ANSWER_REWARD = 0.5
"""The reward for valid plans, and the reward that a right answer adds."""

PENALTY_CAP = 0.49
"""Less than `WRONG_ANSWER_REWARD`. So, with any weights, a right answer earns more than a wrong one, and a wrong one
more than 0."""


class RewardSettings(Settings):
    """Weights of the penalties for what a rollout spent. 0 sets no penalty.

    Choose weights with which the penalties of ordinary plans stay far below `PENALTY_CAP`: above it, spending more
    costs nothing.
    """

    cost: float = Field(default=0.0, ge=0)
    """Reward lost for each dollar."""
    calls: float = Field(default=0.0, ge=0)
    """Reward lost for each worker call."""
    latency: float = Field(default=0.0, ge=0)
    """Reward lost for each second along the critical path, without the time that calls wait for limits or retries."""


class Reward(FrozenModel):
    """One rollout's reward. `cost`, `calls` and `latency` are penalties: positive, and not yet capped."""

    format: float
    """0.5 times the share of rounds with a valid plan; 0 if the first plan is not valid."""
    correct: float = 0.0
    """0.5 if the answer is right."""
    cost: float = 0.0
    calls: float = 0.0
    latency: float = 0.0

    @property
    def penalty(self) -> float:
        """The penalty for invalid plans of later rounds and for what was spent, at most `PENALTY_CAP`."""
        return min(WRONG_ANSWER_REWARD - self.format + self.cost + self.calls + self.latency, PENALTY_CAP)

    @property
    def total(self) -> float:
        """The reward that training maximises: 0 (no valid plan), in (0, 0.5] (wrong) or in (0.5, 1] (right)."""
        return WRONG_ANSWER_REWARD + self.correct - self.penalty if self.format else 0.0


def reward(trace: Trace, grade: Grade, settings: RewardSettings) -> Reward:
    """The reward of an answered and graded question.

    After an invalid plan in the first round there is no answer. After one in a later round the answer of the round
    before stays, as after an acceptance, but the round earns nothing.
    """
    if not first_plan_is_valid(trace):
        return Reward(format=0.0)
    readable = [_readable(round_) for round_ in trace.rounds]
    return Reward(
        format=WRONG_ANSWER_REWARD * sum(readable) / len(readable),
        correct=WRONG_ANSWER_REWARD if grade.correct else 0.0,
        cost=settings.cost * trace.uncached_usd,
        calls=settings.calls * trace.calls,
        latency=settings.latency * trace.critical_path_s,
    )


def round_reward(trace: Trace, grade: Grade, settings: RewardSettings) -> Reward:
    """The reward of the last round alone: 0 if its plan is unreadable, whatever the rounds before earned.

    Only what this round spent counts, so that each round pays for its own calls.

    Args:
        grade: of the answer after this round.
    """
    return reward(trace.model_copy(update={"rounds": trace.rounds[-1:]}), grade, settings)


def first_plan_is_valid(trace: Trace) -> bool:
    """Whether the first plan could be parsed and checked."""
    return bool(trace.rounds) and (trace.rounds[0].workflow is not None or trace.rounds[0].accepted)


def _readable(round_: RoundTrace) -> bool:
    """Whether the round counts as valid. It does, too, if the time was up before the planner wrote the plan."""
    return round_.workflow is not None or round_.accepted or round_.error_kind == "time_is_up"
