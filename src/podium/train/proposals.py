"""Plans that the policy did not write, tried beside its own: committees at random.

What a policy seldom samples it seldom learns about. Where trying costs nothing, as with recorded answers, plans can be
proposed to it: each counts as much as the policy's own probability of it among all that were tried on the question
(all-action policy gradient, Asadi et al. 2017, over a set drawn anew each time), so that proposals change what is known
and not what is aimed at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from podium.train.warmstart.recorded_lessons import kind_in, random_committee, thought
from podium.types import Profile
from podium.workflow import render

_NEGLIGIBLE = 1e-4


def propose(written: str, profiles: Sequence[Profile], *, count: int, max_steps: int, seed: str) -> list[str]:
    """Different completions: the thought that the policy wrote, with committees of its pool.

    Args:
        written: a completion of the policy, whose thought names the kind of the question.
    """
    kind = kind_in(written)
    rng = Random(f"proposals/{seed}")
    drawn = (random_committee(rng, profiles, max_steps=max_steps) for _ in range(count))
    texts = (f"{thought(kind, plan, profiles)}\n{render(plan)}" for plan in drawn)
    return list(dict.fromkeys(texts))


@dataclass(slots=True)
class Tried:
    """A completion that was tried on a question."""

    logprobs: Sequence[float]
    """Of its tokens under the policy."""
    rewards: list[float] = field(default_factory=list)
    """Of each time."""
    distance: float = 0.0
    """How many nats likelier it is than it was at the start."""


def all_action_advantages(tried: Sequence[Tried], kl: float) -> list[float | None]:
    """For each completion its probability among these times what it earns above their mean.

    Args:
        kl: reward lost for each nat of distance.

    Returns:
        None for those so unlikely that their gradient is nothing beside the others'.
    """
    sums = [math.fsum(one.logprobs) for one in tried]
    weights = [math.exp(value - max(sums)) for value in sums]
    shares = [weight / math.fsum(weights) for weight in weights]
    earned = [fmean(one.rewards) - kl * one.distance for one in tried]
    mean = math.fsum(share * value for share, value in zip(shares, earned, strict=True))
    return [
        share * (value - mean) if share > _NEGLIGIBLE else None
        for share, value in zip(shares, earned, strict=True)
    ]
