"""Accuracy over dollars: the front of several planners, and what it costs at an accuracy.

A front is the concave hull of the points (dollars a question, accuracy) of planners of one family: one method at
several settings, say. Every point of the hull can be had: a user sends each question at random to one of the two
planners beside it. Below the cheapest planner the user answers only some of the questions, so (0, 0) belongs to every
front. To the right of the most accurate planner the front is flat: more expensive planners are not taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from podium.evals.comparison import Figure
from podium.planners.answer_matrix import Floats
from podium.types import FrozenModel

Point = tuple[float, float]
"""(dollars a question, accuracy)."""
_RESAMPLES = 1000


class PriceShare(FrozenModel):
    """A price as a share of another one, with its 95 % interval; infinite where the accuracy is never reached."""

    share: Figure
    low: Figure
    high: Figure


def hull(points: Iterable[Point]) -> list[Point]:
    """The points of the front, cheapest first, from (0, 0) on. Points with infinite or unknown values are left out."""
    corners: list[Point] = [(0.0, 0.0)]
    for usd, accuracy in sorted(
        (p for p in points if all(map(math.isfinite, p))), key=lambda p: (p[0], -p[1])
    ):
        if accuracy <= corners[-1][1]:
            continue
        while len(corners) > 1 and _turns_up(corners[-2], corners[-1], (usd, accuracy)):
            corners.pop()
        if usd <= corners[-1][0]:  # Free, and better than nothing.
            corners.pop()
        corners.append((usd, accuracy))
    return corners


def _turns_up(first: Point, second: Point, third: Point) -> bool:
    """Whether the second point lies on or below the line from the first to the third."""
    run, rise = third[0] - first[0], third[1] - first[1]
    return (second[1] - first[1]) * run <= rise * (second[0] - first[0])


def usd_for(points: Iterable[Point], accuracy: float) -> float:
    """The dollars at which the front reaches this accuracy; infinite if it never does."""
    dollars, accuracies = columns(hull(points))
    reached = accuracy <= accuracies[-1] + 1e-12  # The same mean, summed in another order, may be larger.
    return float(np.interp(accuracy, accuracies, dollars)) if reached else math.inf


def columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Dollars, and accuracies."""
    return [usd for usd, _ in points], [accuracy for _, accuracy in points]


def price_of_accuracy(
    accuracy_PQ: Floats, cost_PQ: Floats, best_single: tuple[Floats, Floats]
) -> PriceShare | None:
    """What the front of P planners on Q questions costs at the best single worker's accuracy, with an interval from a
    bootstrap over questions, or None if that worker costs nothing.

    Args:
        accuracy_PQ, cost_PQ: share of right answers and dollars of each planner on each question.
        best_single: accuracy and dollars of the best single worker on each question.
    """
    right_Q, usd_Q = best_single
    if usd_Q.mean() <= 0:
        return None
    weights_BQ = resample_weights(accuracy_PQ.shape[1])
    drawn = zip(weights_BQ @ accuracy_PQ.T, weights_BQ @ cost_PQ.T, strict=True)
    singles = zip(weights_BQ @ right_Q, weights_BQ @ usd_Q, strict=True)
    shares = [_share(points_of(*means), *single) for means, single in zip(drawn, singles, strict=True)]
    return PriceShare(
        share=_share(
            points_of(accuracy_PQ.mean(axis=1), cost_PQ.mean(axis=1)),
            float(right_Q.mean()),
            float(usd_Q.mean()),
        ),
        # Not interpolated: between a number and infinity there is no mean.
        low=float(np.quantile(shares, 0.025, method="lower")),
        high=float(np.quantile(shares, 0.975, method="higher")),
    )


@lru_cache(maxsize=1)
def resample_weights(questions: int) -> Floats:
    """[B, Q]: how often each resample has each question, as a share. All fronts have the same resamples."""
    rng = np.random.default_rng(list(b"measures/fronts"))
    return rng.multinomial(questions, np.full(questions, 1 / questions), size=_RESAMPLES) / questions


def points_of(accuracy_P: Floats, cost_P: Floats) -> list[Point]:
    """The point of each planner."""
    return [(float(usd), float(share)) for usd, share in zip(cost_P, accuracy_P, strict=True)]


def _share(points: Sequence[Point], accuracy: float, usd: float) -> float:
    """The front's price of an accuracy, as a share of `usd`."""
    return usd_for(points, accuracy) / usd if usd > 0 else math.inf
