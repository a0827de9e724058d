"""The area under a front of accuracy over dollars, and the accuracy that it gives at a price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from podium.evals.stats import Interval
from podium.planners.answer_matrix import Floats
from podium.types import FrozenModel
from podium_research.measures.fronts import Point, columns, hull, points_of, resample_weights


class Front(FrozenModel):
    """What a family of planners offers for its dollars."""

    label: str
    planners: tuple[str, ...]
    """Labels of its planners."""
    points: tuple[Point, ...]
    """The hull, cheapest first, without (0, 0)."""
    area: Interval | None = None
    """AIQ, from 0 to 1: the mean height of the front between the dollars of the cheapest and the most expensive
    single worker. None without single workers, and where all cost the same."""
    accuracy_at_equal_usd: float | None = None
    """Its accuracy at the dollars of the first planner."""


def accuracy_at(points: Iterable[Point], usd: float) -> float:
    """The front's accuracy at these dollars a question."""
    dollars, accuracies = columns(hull(points))
    return float(np.interp(usd, dollars, accuracies))


def area(points: Iterable[Point], least_usd: float, most_usd: float) -> float:
    """AIQ, the average improvement in quality of RouterBench (Hu et al. 2024, arXiv 2403.12031).

    ∫ accuracy d$ / (most_usd - least_usd) from `least_usd` to `most_usd`, over the front. All fronts that are compared
    need the same two limits.
    """
    front = hull(points)
    inside = [usd for usd, _ in front if least_usd < usd < most_usd]
    grid = [least_usd, *inside, most_usd]
    heights = np.interp(grid, *columns(front))
    return float(np.trapezoid(heights, grid)) / (most_usd - least_usd)


def measure_front(
    label: str,
    planners: Sequence[str],
    accuracy_PQ: Floats,
    cost_PQ: Floats,
    *,
    limits_usd: tuple[float, float] | None = None,
    equal_usd: float | None = None,
) -> Front:
    """The front of P planners on Q questions, with intervals from a bootstrap over questions.

    Args:
        accuracy_PQ, cost_PQ: share of right answers and dollars of each planner on each question.
        limits_usd: the dollars between which the area is taken.
        equal_usd: the dollars at which the accuracy is read.
    """
    points = points_of(accuracy_PQ.mean(axis=1), cost_PQ.mean(axis=1))
    weights_BQ = resample_weights(accuracy_PQ.shape[1])
    drawn = [
        points_of(*means) for means in zip(weights_BQ @ accuracy_PQ.T, weights_BQ @ cost_PQ.T, strict=True)
    ]
    found_area = None
    if limits_usd is not None and limits_usd[0] < limits_usd[1]:
        low, high = np.quantile([area(resample, *limits_usd) for resample in drawn], [0.025, 0.975])
        found_area = Interval(mean=area(points, *limits_usd), low=float(low), high=float(high))
    return Front(
        label=label,
        planners=tuple(planners),
        points=tuple(hull(points)[1:]),
        area=found_area,
        accuracy_at_equal_usd=None if equal_usd is None else accuracy_at(points, equal_usd),
    )
