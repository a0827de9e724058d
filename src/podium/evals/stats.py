"""Confidence intervals for means over questions, paired tests, and their adjustment for many rows.

The question is the unit. Repeats of a question are averaged first, because they are not independent evidence about
other questions. All intervals are 95 %. `research/runs/paired_tests.py` measures how often intervals and tests err.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from podium.types import FrozenModel

_AT_ONCE = 10**6
"""The most values that a bootstrap holds in memory."""
_KEPT = 10**7
"""The most drawn questions (40 MB) that are kept, for the next interval over the same number of questions."""
_MAX_DENOMINATOR = 120
"""The permutation test counts in units of one over this number of a question."""


class Interval(FrozenModel):
    """An estimate and the 95 % interval about it."""

    mean: float
    low: float
    high: float


def mean_interval(scores: Sequence[float], *, resamples: int = 2000) -> Interval | None:
    """The percentile-bootstrap interval of a mean over questions. None for a single question.

    Whole questions are resampled, so repeats stay together. The same scores always give the same interval.
    """
    if len(scores) < 2:
        return None
    values = np.asarray(scores, dtype=float)
    size = resamples, len(values)
    blocks = _kept_draws(*size) if resamples * len(values) <= _KEPT else _draws(*size)
    low, high = np.quantile(np.concatenate([values[block].mean(axis=1) for block in blocks]), [0.025, 0.975])
    return Interval(mean=float(values.mean()), low=float(low), high=float(high))


def _draws(resamples: int, questions: int) -> Iterator[npt.NDArray[np.int32]]:
    """[resamples, questions], in blocks: the questions of each resample. The same arguments give the same questions."""
    rng = np.random.default_rng(list(b"mean-interval"))
    for block in np.array_split(np.arange(resamples), math.ceil(resamples * questions / _AT_ONCE)):
        yield rng.integers(questions, size=(len(block), questions)).astype(np.int32)


@lru_cache(maxsize=1)
def _kept_draws(resamples: int, questions: int) -> tuple[npt.NDArray[np.int32], ...]:
    return tuple(_draws(resamples, questions))


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
    # If every question has the same share, the variance is 0. Then `rollouts` bounds the number of observations.
    count = min(max(effective, questions), rollouts) if 0 < share < 1 else questions
    z = 1.959964
    scale = 1 + z * z / count
    centre = (share + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    # At shares of 0 and 1 the share is a bound, which rounding may miss.
    low, high = max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
    return Interval(mean=share, low=low, high=high)


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """The mean of `first` minus `second` over the same questions in the same order. None for one question."""
    return mean_interval(np.subtract(first, second).tolist())


def permutation_test(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value that two methods are right equally often, by a permutation test clustered by question.

    If they are, the two methods could be exchanged on any question, and the sign of the question's difference is plus
    or minus with equal probability. The repeats of a question are exchanged together. The sum of the differences has
    the characteristic function of independent signs, ∏ cos(d·t), whose inverse Fourier transform gives the probability
    of every sum, so nothing is drawn at random. Only half of the probability of the observed sum counts (the mid-p of
    Lancaster 1961): the full exact test rejects too seldom if few questions differ. For one answer to each question it
    is McNemar's mid-p test (Fagerland, Lydersen and Laake 2013).

    Args:
        first: the share of right answers to each question.
        second: the shares of the other method, in the same order. Differences whose common denominator is above 120 are
            rounded to 1/120.
    """
    differences, counts = np.unique(np.subtract(first, second), return_counts=True)
    scales = (scale for scale in range(1, _MAX_DENOMINATOR) if _all_whole(differences * scale))
    units = np.rint(differences * next(scales, _MAX_DENOMINATOR))
    observed, most = abs(int(units @ counts)), int(np.abs(units) @ counts)
    angles = 2 * np.pi / (2 * most + 1) * np.arange(most + 1)
    characteristic = np.prod(np.cos(np.outer(units, angles)) ** counts[:, None], axis=0)
    probabilities = np.fft.irfft(characteristic, n=2 * most + 1)
    tail = 2 * probabilities[observed : most + 1].sum() - probabilities[observed]
    return float(np.clip(tail, 0.0, 1.0))


def _all_whole(values: npt.NDArray[np.float64]) -> bool:
    return bool(np.abs(values - np.rint(values)).max(initial=0.0) < 1e-9)


def adjusted_p_values(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """The p-values adjusted for their number by Holm's method (1979). None stays None, and does not count.

    If all adjusted values up to 0.05 are called differences, the probability of any mistake is at most 5 %, however the
    tests depend on each other.
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for before, (p, index) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(tested) - before)))
        adjusted[index] = largest
    return tuple(adjusted)
