"""What training maximises: the reward of a rollout with its components, and of each of its rounds (the paper, 3.2).

All functions are pure. `rollout` runs and grades, and `podium.train.objective` compares the rewards of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from podium.config import Settings
from podium.rollout.rollout import Rollout
from podium.trace import RoundTrace
from podium.types import FrozenModel

WRONG_ANSWER_REWARD = 0.5
"""The reward for valid plans, and the reward that a right answer adds."""

PENALTY_CAP = 0.49
"""The largest penalty. It is below `WRONG_ANSWER_REWARD`, so with any weights a right answer earns more than a wrong
answer, and a wrong answer more than 0."""


class RewardSettings(Settings):
    """Weights of the penalties for what a rollout spent. 0 sets no penalty.

    Choose weights with which the penalties of ordinary plans stay far below `PENALTY_CAP`, since beyond it more
    spending costs no reward.
    """

    cost: float = Field(default=0.0, ge=0)
    """Reward lost for each dollar."""
    calls: float = Field(default=0.0, ge=0)
    """Reward lost for each worker call."""
    latency: float = Field(default=0.0, ge=0)
    """Reward lost for each second along the critical path, without the time that calls wait for limits or retries."""


class Reward(FrozenModel):
    """One rollout's reward. `cost`, `calls` and `latency` are penalties. They are positive and not yet capped."""

    format: float
    """0.5 times the share of rounds with a valid plan. 0 if the first plan is not valid."""
    correct: float = 0.0
    """0.5 if the answer is right, else 0."""
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


def reward(rollout: Rollout, settings: RewardSettings) -> Reward | None:
    """The reward of a rollout. None if workers or the grader failed, so that the rollout is left out of its group.

    After an invalid plan in the first round there is no answer. After an invalid plan in a later round the answer of
    the round before stays, as after an acceptance, but the round earns nothing.
    """
    if rollout.infrastructure_failed:
        return None
    if not rollout.valid:
        return Reward(format=0.0)
    trace = rollout.trace
    readable = [_readable(round_) for round_ in trace.rounds]
    return Reward(
        format=WRONG_ANSWER_REWARD * sum(readable) / len(readable),
        correct=WRONG_ANSWER_REWARD if rollout.correct else 0.0,
        cost=settings.cost * trace.uncached_usd,
        calls=settings.calls * trace.calls,
        latency=settings.latency * trace.critical_path_s,
    )


def round_reward(rollout: Rollout, settings: RewardSettings) -> Reward | None:
    """The reward of only the last round. It is 0 if its plan is unreadable, whatever earlier rounds earned.

    Only this round's spending counts, so that each round pays for its own calls. It is None when `reward` is None.
    """
    if rollout.infrastructure_failed:
        return None
    trace = rollout.trace
    return reward(
        rollout.model_copy(update={"trace": trace.model_copy(update={"rounds": trace.rounds[-1:]})}), settings
    )


def discounted_rewards(
    rewards: Sequence[float | None], whole: float | None, discount: float | Literal["none"]
) -> list[float | None]:
    """The reward that each plan of a rollout earns: (1 - d) times its own, and d times that of the round after it.

    The last round has only its own reward. So has a round whose later round was left out, since failed workers there
    say nothing about the earlier plan. (The paper, section 3.2, and its code.)

    Args:
        rewards: the reward of each round by itself, in order. None for a round that was left out.
        whole: the reward of all rounds together, which each plan has without a discount. None if a round was left out.
    """
    if discount == "none":
        return [whole] * len(rewards)
    earned: list[float | None] = []
    later = None
    for own in reversed(rewards):
        later = own if own is None or later is None else (1 - discount) * own + discount * later
        earned.append(later)
    return earned[::-1]


def _readable(round_: RoundTrace) -> bool:
    """Whether the round counts as valid. It also does if the time was up before the planner wrote the plan."""
    return round_.workflow is not None or round_.accepted or round_.error_kind == "time_is_up"
