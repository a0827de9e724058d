"""What the pool's diversity allows at most: how often any worker is right, and how much of that is luck.

Where several workers guess, one of them is often right by luck, and no planner can know which. Second answers tell luck
from skill: for each question a worker is picked whose first answer was right, and its second answer counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.evals.stats import Interval, accuracy_interval
from podium.ratings.answers import Answers, Floats, select
from podium.study.methods import best_single


@dataclass(frozen=True)
class Diversity:
    """The bounds of one pool on its questions."""

    any_right: Interval
    """The share of questions to which any worker's first answer was right: a bound for planners that choose a worker
    and know each answer's luck."""
    none_right: float
    """The share of questions to which no worker was right."""
    repeated: int = 0
    """Questions to which every worker answered twice."""
    any_right_of_repeated: float = float("nan")
    """`any_right` on these questions alone."""
    again: Interval | None = None
    """On these questions: how often a worker whose first answer was right is right again. It is the bound for planners
    that know which worker is right on which question, and no worker's luck. None: no question was repeated."""
    best_of_repeated: float = float("nan")
    """The accuracy of the best single worker on these questions."""


def diversity(answers: Answers) -> Diversity:
    """The bounds of the workers of these answers."""
    right_QW = answers.alone_QWR[:, :, 0]
    any_Q = right_QW.max(axis=1)
    overall = Diversity(_share(any_Q), float(1 - any_Q.mean()))
    twice = np.flatnonzero(_least_samples(answers) >= 2)
    if len(twice) < 2:
        return overall
    repeated = select(answers, twice)
    first_QW, second_QW = repeated.alone_QWR[:, :, 0], repeated.alone_QWR[:, :, 1]
    best = best_single(answers)
    # Where nobody was right, an oracle has no reason to leave the best worker.
    lucky_Q = [np.flatnonzero(row) if row.any() else np.array([best]) for row in first_QW]
    again_Q = np.array([second[lucky].mean() for lucky, second in zip(lucky_Q, second_QW, strict=True)])
    return Diversity(
        overall.any_right,
        overall.none_right,
        len(twice),
        float(first_QW.max(axis=1).mean()),
        _share(again_Q),
        float(repeated.alone_QWR[:, best, :2].mean()),
    )


def _least_samples(answers: Answers) -> Floats:
    own_QW = answers.own_samples_QW
    if own_QW is None:
        return np.full(len(answers.texts), answers.samples, dtype=float)
    least_Q: Floats = own_QW.min(axis=1).astype(float)
    return least_Q


def _share(score_Q: Floats) -> Interval:
    return accuracy_interval(score_Q.tolist(), rollouts=len(score_Q))
