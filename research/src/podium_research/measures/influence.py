"""How much one adversarial worker can spoil, by its position in the plan."""

from __future__ import annotations

from typing import Literal

import numpy as np

from podium.evals.evaluation import Evaluation
from podium.evals.stats import Interval, accuracy_interval
from podium.types import FrozenModel
from podium_research.measures.repeats import mean_over_repeats, right_by_repeat, stacked

Position = Literal["first", "middle", "last"]
"""Which step of a plan the adversary does, among the steps that no tool does and that the answer needs. In a plan with
one such step all three are the same."""
POSITIONS: tuple[Position, ...] = ("first", "middle", "last")


class Influence(FrozenModel):
    """The answers of one planner without and with an adversary."""

    position: Position
    right_before: int
    """Answers that were right without the adversary."""
    lost: Interval | None
    """The share of them that are wrong with it. None if none was right."""
    gained: float | None
    """The share of answers that were wrong without it, and are right with it: chance, or a plan that profits from being
    contradicted. None if none was wrong."""


def measure_influence(before: Evaluation, after: Evaluation, position: Position) -> Influence:
    """The influence of one adversarial worker on one planner: the rate of flips from right to wrong.

    After the adversarial minority influence of Li et al. (arXiv 2302.03322), in the form that answers in words allow:
    only the final answer is looked at. `podium_research.measures.adversary` makes `after`.

    Args:
        before: without the adversary; the same questions, repeats and seed as `after`.
    """
    before_QR, after_QR = stacked([right_by_repeat(before), right_by_repeat(after)])
    known_QR = ~np.isnan(before_QR) & ~np.isnan(after_QR)
    right_QR, wrong_QR = known_QR & (before_QR == 1), known_QR & (before_QR == 0)
    lost_Q = mean_over_repeats(np.where(right_QR, 1 - after_QR, np.nan))
    lost = lost_Q[~np.isnan(lost_Q)].tolist()
    return Influence(
        position=position,
        right_before=int(right_QR.sum()),
        lost=accuracy_interval(lost, rollouts=int(right_QR.sum())) if lost else None,
        gained=float(after_QR[wrong_QR].mean()) if wrong_QR.any() else None,
    )
