"""Advantages: each reward against the others of its group (the paper, equation 2; its code adds 1e-4).

advantage = (reward - mean) / (deviation + floor), the deviation with n - 1 as in the paper's trainer. Pure.
A floor far above the paper's keeps small differences small: without one, a group whose answers are all right and
whose costs differ by a cent pulls as hard as a group in which some are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

PAPER_STD_EPS = 1e-4
"""What the paper's code adds to the deviation."""


def advantages(rewards: Sequence[float | None], floor: float = PAPER_STD_EPS) -> tuple[float | None, ...]:
    """The advantage of each rollout of one group.

    A reward of None, a rollout whose workers failed, has no advantage and does not count in the others'. A
    group whose rewards are all equal has advantages of exactly 0: it has nothing to teach.
    """
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2 or min(known) == max(known):
        return tuple(None if reward is None else 0.0 for reward in rewards)
    mean, scale = fmean(known), stdev(known) + floor
    return tuple(None if reward is None else (reward - mean) / scale for reward in rewards)
