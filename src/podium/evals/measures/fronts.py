"""Accuracy over dollars: the front of several planners, its area, and what it gives at a price.

A front is the concave hull of the points (dollars a question, accuracy) of planners of one family: one method at
several settings, say. Every point of the hull can be had: a user sends each question at random to one of the two
planners beside it. Below the cheapest planner the user answers only some of the questions, so (0, 0) belongs to every
front. To the right of the most accurate planner the front is flat: dearer planners are not taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from podium.evals.comparison import Figure
from podium.evals.stats import Interval
from podium.ratings.answers import Floats
from podium.types import Value

Point = tuple[float, float]
"""(dollars a question, accuracy)."""
_RESAMPLES = 1000


class PriceShare(Value):
    """A price as a share of another one, with its 95 % interval; infinite where the accuracy is never reached."""

    share: Figure
    low: Figure
    high: Figure


class Front(Value):
    """What a family of planners offers for its dollars."""

    label: str
    planners: tuple[str, ...]
    """Labels of its planners."""
    points: tuple[Point, ...]
    """The hull, cheapest first, without (0, 0)."""
    area: Interval | None = None
    """AIQ, from 0 to 1: the mean height of the front over the dollars from the cheapest to the dearest single worker.
    None: no single workers, or all cost the same."""
    price_of_best_single: PriceShare | None = None
    """What the front costs at the best single worker's accuracy, as a share of what that worker costs. None: no single
    workers, or the best one costs nothing."""
    accuracy_at_equal_usd: float | None = None
    """Its accuracy at the dollars of the first planner."""


def hull(points: Iterable[Point]) -> list[Point]:
    """The points of the front, cheapest first, from (0, 0) on. Points with infinite or unknown values are left out."""
    kept: list[Point] = [(0.0, 0.0)]
    for usd, accuracy in sorted(
        (p for p in points if all(map(math.isfinite, p))), key=lambda p: (p[0], -p[1])
    ):
        if accuracy <= kept[-1][1]:
            continue
        while len(kept) > 1 and _turns_up(kept[-2], kept[-1], (usd, accuracy)):
            kept.pop()
        if usd <= kept[-1][0]:  # Free, and better than nothing.
            kept.pop()
        kept.append((usd, accuracy))
    return kept


def _turns_up(first: Point, second: Point, third: Point) -> bool:
    """Whether the second point lies on or below the line from the first to the third."""
    run, rise = third[0] - first[0], third[1] - first[1]
    return (second[1] - first[1]) * run <= rise * (second[0] - first[0])


def accuracy_at(points: Iterable[Point], usd: float) -> float:
    """The front's accuracy at these dollars a question."""
    dollars, accuracies = _columns(hull(points))
    return float(np.interp(usd, dollars, accuracies))


def usd_for(points: Iterable[Point], accuracy: float) -> float:
    """The dollars at which the front reaches this accuracy; infinite if it never does."""
    dollars, accuracies = _columns(hull(points))
    reached = accuracy <= accuracies[-1] + 1e-12  # The same mean, summed in another order, may be larger.
    return float(np.interp(accuracy, accuracies, dollars)) if reached else math.inf


def area(points: Iterable[Point], least_usd: float, most_usd: float) -> float:
    """AIQ, the average improvement in quality of RouterBench (Hu et al. 2024, arXiv 2403.12031).

    ∫ accuracy d$ / (most_usd - least_usd) from `least_usd` to `most_usd`, over the front. All fronts that are compared
    need the same two limits.
    """
    front = hull(points)
    inside = [usd for usd, _ in front if least_usd < usd < most_usd]
    grid = [least_usd, *inside, most_usd]
    heights = np.interp(grid, *_columns(front))
    return float(np.trapezoid(heights, grid)) / (most_usd - least_usd)


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [usd for usd, _ in points], [accuracy for _, accuracy in points]


def measure_front(
    label: str,
    planners: Sequence[str],
    accuracy_PQ: Floats,
    cost_PQ: Floats,
    *,
    best_single: tuple[Floats, Floats] | None = None,
    limits_usd: tuple[float, float] | None = None,
    equal_usd: float | None = None,
) -> Front:
    """The front of P planners on Q questions, with intervals from a bootstrap over questions.

    Args:
        accuracy_PQ, cost_PQ: share of right answers and dollars of each planner on each question.
        best_single: accuracy and dollars of the best single worker on each question.
        limits_usd: the dollars between which the area is taken.
        equal_usd: the dollars at which the accuracy is read.
    """
    points = _points(accuracy_PQ.mean(axis=1), cost_PQ.mean(axis=1))
    weights_BQ = _weights(accuracy_PQ.shape[1])
    drawn = [
        _points(*means) for means in zip(weights_BQ @ accuracy_PQ.T, weights_BQ @ cost_PQ.T, strict=True)
    ]
    found_area = price = None
    if limits_usd is not None and limits_usd[0] < limits_usd[1]:
        low, high = np.quantile([area(resample, *limits_usd) for resample in drawn], [0.025, 0.975])
        found_area = Interval(mean=area(points, *limits_usd), low=float(low), high=float(high))
    if best_single is not None and best_single[1].mean() > 0:
        right_Q, usd_Q = best_single
        singles = zip(weights_BQ @ right_Q, weights_BQ @ usd_Q, strict=True)
        shares = [_share(resample, *single) for resample, single in zip(drawn, singles, strict=True)]
        price = PriceShare(
            share=_share(points, float(right_Q.mean()), float(usd_Q.mean())),
            # Not interpolated: between a number and infinity there is no mean.
            low=float(np.quantile(shares, 0.025, method="lower")),
            high=float(np.quantile(shares, 0.975, method="higher")),
        )
    return Front(
        label=label,
        planners=tuple(planners),
        points=tuple(hull(points)[1:]),
        area=found_area,
        price_of_best_single=price,
        accuracy_at_equal_usd=None if equal_usd is None else accuracy_at(points, equal_usd),
    )


@lru_cache(maxsize=1)
def _weights(questions: int) -> Floats:
    """[B, Q]: how often each resample has each question, as a share. All fronts have the same resamples."""
    rng = np.random.default_rng(list(b"measures/fronts"))
    return rng.multinomial(questions, np.full(questions, 1 / questions), size=_RESAMPLES) / questions


def _points(accuracy_P: Floats, cost_P: Floats) -> list[Point]:
    return [(float(usd), float(share)) for usd, share in zip(cost_P, accuracy_P, strict=True)]


def _share(points: Sequence[Point], accuracy: float, usd: float) -> float:
    """The front's price of an accuracy, as a share of `usd`."""
    return usd_for(points, accuracy) / usd if usd > 0 else math.inf
