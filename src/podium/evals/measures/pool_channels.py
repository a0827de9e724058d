"""What the diversity of a pool allows: how much its workers' errors coincide, and whether a team can help there.

`podium.study.diversity` measures how much of the bound is luck, where workers answered a question twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from podium.evals.measures.arrays import mean_over_repeats
from podium.evals.stats import Interval, accuracy_interval
from podium.ratings.answers import Floats
from podium.types import Value

_LEAST_GAIN = 0.01
"""A smaller gain of the oracle is not worth a team."""


class PoolChannels(Value):
    """The single workers of a pool on the same questions."""

    workers: tuple[str, ...]
    accuracy: tuple[float, ...]
    """The accuracy of each worker alone."""
    best: str
    """The best single worker: the most accurate on these questions, unless the caller chose another."""
    any_right: Interval
    """The share of questions to which any worker gave a right answer: the oracle's accuracy."""
    channels: float
    """K*, the effective number of workers: 1 if all are right on the same questions, the number of workers if their
    errors are independent."""
    correlation: float | None
    """The mean correlation of the errors of two workers; None: fewer than two workers vary."""
    constant: tuple[str, ...]
    """Workers that were always right or always wrong. No correlation with them is defined, so they are left out of
    `channels` and `correlation`."""
    fan_in: int
    """The largest odd number of workers in the pool, the voters of `amplification`."""
    amplification: float | None
    """How much a vote of so many workers amplifies a weak signal; at most 1: it does not. None: as `correlation`."""

    @property
    def best_accuracy(self) -> float:
        """The accuracy of the best single worker."""
        return self.accuracy[self.workers.index(self.best)]

    @property
    def team_can_help(self) -> bool:
        """Whether choosing or combining these workers could beat the best one at all."""
        return self.any_right.mean - self.best_accuracy >= _LEAST_GAIN

    @property
    def statement(self) -> str:
        """What that means for a team of these workers, in one or two sentences."""
        gain = self.any_right.mean - self.best_accuracy
        if not self.team_can_help:
            return (
                f"A team cannot help on these questions: {self.best} alone is right on {self.best_accuracy:.1%}, and "
                f"any of the workers on {self.any_right.mean:.1%}."
            )
        says = (
            f"A team may help: a planner that always chose a worker that is right would gain {gain * 100:.1f} points "
            f"on {self.best} alone."
        )
        if self.amplification is None:
            return says
        if self.amplification <= 1:
            return f"{says} A vote cannot: the workers' errors coincide (correlation {self.correlation:.2f})."
        return (
            f"{says} A vote of {self.fan_in} amplifies a weak signal {self.amplification:.2f} times; the "
            f"{len(self.workers)} workers count as {self.channels:.1f} independent ones."
        )


def measure_channels(workers: Sequence[str], right_WQR: Floats, *, best: int | None = None) -> PoolChannels:
    """The channels of a pool.

    Args:
        right_WQR: whether each worker was right; NaN: not known.
        best: number of the best single worker; None: the most accurate on these questions.
    """
    known_QR = np.isfinite(right_WQR.sum(axis=0))
    shares_WQ = np.stack([mean_over_repeats(np.where(known_QR, right_QR, np.nan)) for right_QR in right_WQR])
    shares_WQ = shares_WQ[:, known_QR.any(axis=1)]
    answers_WN = right_WQR[:, known_QR]
    any_QR = np.where(known_QR, right_WQR.max(axis=0), np.nan)
    any_Q = mean_over_repeats(any_QR)
    accuracy = shares_WQ.mean(axis=1)
    constant = [bool(row.min() == row.max()) for row in answers_WN]
    varying_VN = answers_WN[~np.array(constant)]
    correlation = error_correlation(varying_VN) if len(varying_VN) > 1 else None
    fan_in = len(workers) - 1 + len(workers) % 2
    return PoolChannels(
        workers=tuple(workers),
        accuracy=tuple(map(float, accuracy)),
        best=workers[int(accuracy.argmax()) if best is None else best],
        any_right=accuracy_interval(any_Q[~np.isnan(any_Q)].tolist(), rollouts=int(known_QR.sum())),
        channels=effective_channels(varying_VN) if len(varying_VN) else 1.0,
        correlation=correlation,
        constant=tuple(name for name, same in zip(workers, constant, strict=True) if same),
        fan_in=fan_in,
        amplification=None if correlation is None else amplification(correlation, fan_in),
    )


def effective_channels(right_WN: Floats) -> float:
    """K* = 2^H(λ), where λ are the eigenvalues of the correlation matrix of the rows, divided by their sum, and H is
    Shannon's entropy in bits.

    From the effective channels of arXiv 2602.03794 (SafeRL-Lab/Agent-Scaling), which takes embeddings of answers. Here
    the rows say which answers are right, so no embedding model is needed, and only rightness counts as diversity.

    Args:
        right_WN: 1 or 0 for each worker and answer; each row varies.
    """
    eigenvalues = np.linalg.eigvalsh(np.atleast_2d(np.corrcoef(right_WN)))
    shares = np.clip(eigenvalues, 0, None) / np.clip(eigenvalues, 0, None).sum()
    shares = shares[shares > 0]
    return float(2 ** -(shares * np.log2(shares)).sum())


def error_correlation(right_WN: Floats) -> float:
    """The mean of Pearson's correlation (φ) over all pairs of rows; each row varies."""
    correlations = np.atleast_2d(np.corrcoef(right_WN))
    return float(correlations[np.triu_indices(len(correlations), k=1)].mean())


def amplification(correlation: float, fan_in: int, *, kept: float = 1.0) -> float:
    """α = γ·(ρ + (1 - ρ)·b·C(b-1, (b-1)/2) / 2^(b-1)), the phase transition of arXiv 2601.17311.

    A weak majority signal (many workers barely better than chance between two answers) grows by this factor in a vote
    of b workers whose errors have the correlation ρ, if a share γ of it survives being passed on. At most 1: the signal
    dies out, however many workers are added.

    Args:
        fan_in: b, odd.
        kept: γ; 1 for a vote, which sees whole answers.
    """
    slope: float = fan_in * math.comb(fan_in - 1, (fan_in - 1) // 2) / 2 ** (fan_in - 1)
    return kept * (correlation + (1 - correlation) * slope)
