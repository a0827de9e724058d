"""The reward of one rollout, its parts kept apart (the paper, section 3.2).

Pure: a trace and a grade in, a value out. Running and grading are `rollout`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from podium.config import Settings
from podium.tasks.task import Grade
from podium.trace import RoundTrace, Trace

HALF = 0.5
"""What readable plans earn, and what a right answer adds."""

PENALTY_CAP = 0.49
"""Below `HALF`, so that right > wrong > unreadable holds whatever the weights are."""


class RewardSettings(Settings):
    """Weights of what a rollout spent; 0: it does not count.

    Choose weights with which ordinary plans stay far below `PENALTY_CAP`: above it, spending more is free.
    """

    cost: float = Field(default=0.0, ge=0)
    """Reward lost for each dollar."""
    calls: float = Field(default=0.0, ge=0)
    """Reward lost for each worker call."""
    latency: float = Field(default=0.0, ge=0)
    """Reward lost for each second along the critical path, as with idle workers."""


@dataclass(frozen=True, slots=True)
class Reward:
    """One rollout's reward. Penalties are positive and not yet capped."""

    format: float
    """0.5 times the share of rounds whose plan could be read; 0 when the first round's could not be."""
    correct: float = 0.0
    """0.5 when the answer is right."""
    cost: float = 0.0
    calls: float = 0.0
    latency: float = 0.0

    @property
    def penalty(self) -> float:
        """What is taken off for unreadable plans of later rounds and for what was spent, at most `PENALTY_CAP`."""
        return min(HALF - self.format + self.cost + self.calls + self.latency, PENALTY_CAP)

    @property
    def total(self) -> float:
        """What training maximises: 0 (unreadable), (0, 0.5] (wrong) or (0.5, 1] (right)."""
        return HALF + self.correct - self.penalty if self.format else 0.0


def reward(trace: Trace, grade: Grade, settings: RewardSettings) -> Reward:
    """The reward of an answered and graded question.

    An unreadable plan in the first round leaves no answer. In a later round it leaves the answer of the rounds before,
    as an acceptance does, but it is no acceptance and earns nothing.
    """
    if not trace.rounds or not (trace.rounds[0].workflow is not None or trace.rounds[0].accepted):
        return Reward(format=0.0)
    readable = [_readable(round_) for round_ in trace.rounds]
    return Reward(
        format=HALF * sum(readable) / len(readable),
        correct=HALF if grade.correct else 0.0,
        cost=settings.cost * trace.uncached_usd,
        calls=settings.calls * trace.calls,
        latency=settings.latency * trace.critical_path_s,
    )


def round_reward(trace: Trace, grade: Grade, settings: RewardSettings) -> Reward:
    """The reward of the last round alone: 0 if its plan is unreadable, whatever the rounds before earned.

    What was spent counts from this round on, so that each round pays for its own calls.

    Args:
        grade: of the answer after this round.
    """
    return reward(trace.model_copy(update={"rounds": trace.rounds[-1:]}), grade, settings)


def _readable(round_: RoundTrace) -> bool:
    """Whether the plan could be read. Where time was up before it was written, it was no fault of the plan."""
    return round_.workflow is not None or round_.accepted or round_.plan_error_kind == "time_is_up"
