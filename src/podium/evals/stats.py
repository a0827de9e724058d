"""Confidence intervals for means over questions, and paired tests.

The question is the unit. Repeats of a question are averaged first, because they are not independent evidence about
other questions. All intervals are 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from podium.types import Value


class Interval(Value):
    """An estimate and the 95 % interval about it."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0


def mean_interval(scores: Sequence[float], *, resamples: int = 2000) -> Interval | None:
    """The percentile-bootstrap interval of a mean over questions; None for a single question.

    Whole questions are resampled, so repeats stay together. The same scores always give the same interval.

    Args:
        scores: one figure for each question.
    """
    if len(scores) < 2:
        return None
    values = np.asarray(scores, dtype=float)
    rng = np.random.default_rng(list(b"mean-interval"))
    drawn = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(resamples)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(mean=float(values.mean()), low=float(low), high=float(high))


def accuracy_interval(scores: Sequence[float], *, rollouts: int) -> Interval:
    """Wilson's interval of a share, for questions that may have been answered several times.

    Args:
        scores: the share of right answers to each question.
        rollouts: number of all answers.

    The number of observations is p(1-p)/SE², where SE is clustered by question (Kish's design effect). It is at least
    the number of questions, which it equals if all answers to each question agree, and at most `rollouts`. The interval
    stays within [0, 1]. Unlike a bootstrap interval, it has a width at shares of 0 and 1.
    """
    values = np.asarray(scores, dtype=float)
    share, questions = float(values.mean()), len(values)
    variance = float(values.var(ddof=1)) / questions if questions > 1 else 0.0
    effective = share * (1 - share) / variance if variance > 0 else math.inf
    # If every question has the same share, the variance is 0: then `rollouts` bounds the number of observations.
    count = min(max(effective, questions), rollouts) if 0 < share < 1 else questions
    z = 1.959964
    scale = 1 + z * z / count
    centre = (share + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return Interval(mean=share, low=max(0.0, centre - half), high=min(1.0, centre + half))


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """The mean of first minus second over the same questions in the same order; None for one question."""
    return mean_interval(np.subtract(first, second).tolist())


def mcnemar(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The p-value of McNemar's exact test that two methods are right equally often on the same questions.

    Args:
        first: for each question 1 when it was answered rightly, else 0.
        second: the same, in the same order.

    None if a share is between 0 and 1, since the test is for one answer to each question.
    """
    from scipy.stats import binomtest  # noqa: PLC0415 - an optional extra

    if not {*first, *second} <= {0, 1}:
        return None
    gained = sum(a > b for a, b in zip(first, second, strict=True))
    lost = sum(a < b for a, b in zip(first, second, strict=True))
    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
