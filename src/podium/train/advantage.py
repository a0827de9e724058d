"""Advantages: each reward against the others of its group (the paper, equation 2; its code adds 1e-4).

advantage = (reward - mean) / (deviation + 1e-4), the deviation with n - 1 as in the paper's trainer. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

_FLOOR = 1e-4


def advantages(rewards: Sequence[float | None]) -> tuple[float | None, ...]:
    """The advantage of each rollout of one group.

    A reward of None, a rollout whose workers failed, has no advantage and does not count in the others'. A
    group whose rewards are all equal has advantages of exactly 0: it has nothing to teach.
    """
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2 or min(known) == max(known):
        return tuple(None if reward is None else 0.0 for reward in rewards)
    mean, scale = fmean(known), stdev(known) + _FLOOR
    return tuple(None if reward is None else (reward - mean) / scale for reward in rewards)
