"""The reward of one rollout, its parts kept apart (design §8; the paper, section 3.2).

Pure: a trace and a grade in, a value out. Running and grading are the scorer's.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from podium.config import Settings
from podium.tasks.task import Grade
from podium.trace import Trace

HALF = 0.5
"""What a plan that could be read earns, and what a right answer adds."""

PENALTY_CAP = 0.49
"""Below `HALF`, so that right > wrong > unreadable holds whatever the weights are."""


class RewardSettings(Settings):
    """Weights of what a rollout spent. Zero: it does not count.

    A weight is well chosen when ordinary plans stay far below the cap: above it, spending more is free.
    """

    cost: float = Field(default=0.0, ge=0)
    """Reward lost for each dollar."""
    calls: float = Field(default=0.0, ge=0)
    """Reward lost for each worker call."""
    latency: float = Field(default=0.0, ge=0)
    """Reward lost for each second along the critical path, as with idle workers."""


@dataclass(frozen=True, slots=True)
class Reward:
    """One rollout's reward. Earnings are 0 or 0.5 each; penalties are positive and not yet capped."""

    format: float
    """0.5 when the plan could be parsed and checked."""
    correct: float = 0.0
    """0.5 when the answer is right."""
    cost: float = 0.0
    calls: float = 0.0
    latency: float = 0.0

    @property
    def penalty(self) -> float:
        """What is taken off, at most `PENALTY_CAP`."""
        return min(self.cost + self.calls + self.latency, PENALTY_CAP)

    @property
    def total(self) -> float:
        """What training maximises: 0 (unreadable), (0, 0.5] (wrong) or (0.5, 1] (right)."""
        return self.format + self.correct - self.penalty if self.format else 0.0


def reward(trace: Trace, grade: Grade, settings: RewardSettings) -> Reward:
    """The reward of an answered and graded question.

    A plan counts as read when the first round's was: an unreadable plan in a later round leaves the answer
    of the rounds before it.
    """
    if not trace.rounds or trace.rounds[0].workflow is None:
        return Reward(format=0.0)
    return Reward(
        format=HALF,
        correct=HALF if grade.correct else 0.0,
        cost=settings.cost * trace.uncached_usd,
        calls=settings.calls * trace.calls,
        latency=settings.latency * trace.critical_path_s,
    )
