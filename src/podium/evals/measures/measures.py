"""The measures that a suite's report prints, of evaluations on the same questions.

The measures are computed in the other modules of this package. A measure is None where the evaluations or their traces
lack what it needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.errors import UsageError
from podium.evals.evaluation import Evaluation
from podium.evals.measures.arrays import (
    check_same_questions,
    cost_by_repeat,
    mean_over_repeats,
    right_by_repeat,
    stacked,
)
from podium.evals.measures.fronts import PriceShare, price_of_accuracy
from podium.evals.measures.gaps import Gaps, measure_gaps
from podium.evals.measures.plan_variety import PlanVariety, measure_variety
from podium.evals.measures.pool_channels import PoolChannels, measure_channels
from podium.evals.measures.ranking import Strength, rank_planners
from podium.ratings.answers import Floats


@dataclass(frozen=True, slots=True)
class PlannerMeasures:
    """All measures of one planner."""

    label: str
    cost_of_pass: float
    """Dollars a right answer: dollars a question divided by accuracy; infinite where no answer was right."""
    tokens: float
    """Input and output tokens a question, of workers and planner."""
    price_of_best_single: PriceShare | None
    """What it costs at the best single worker's accuracy, as a share of what that worker costs. None: no single
    workers, or the best one costs nothing, or it is a single worker."""
    gaps: Gaps | None
    """None: no single workers."""
    variety: PlanVariety | None
    """None: no plans were run."""
    strength: Strength | None
    """None: there is one planner, or no question to which every planner's answer was graded."""


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures of several planners on the same questions, with the same pool."""

    planners: tuple[PlannerMeasures, ...]
    """The planners, in the order of the evaluations."""
    pool: PoolChannels | None
    """None: fewer than two single workers."""


def measure(evaluations: Mapping[str, Evaluation], *, singles: Mapping[str, str]) -> Measures:
    """All measures of these evaluations.

    Args:
        evaluations: by label, all on the same questions. Repeats and seeds of one planner belong into one evaluation.
        singles: from a worker's name to the label of the evaluation of this worker alone.

    Raises:
        UsageError: there are no evaluations, they are on different questions, or a label is not known.
    """
    if not evaluations:
        raise UsageError("There are no evaluations to measure: give at least one.")
    check_same_questions(evaluations.values())
    measured = _Measured.of(evaluations, singles)
    strengths = {strength.label: strength for strength in measured.ranking()}
    return Measures(
        planners=tuple(
            PlannerMeasures(
                label=label,
                cost_of_pass=cost_of_pass(right_by_repeat(evaluation), cost_by_repeat(evaluation)),
                tokens=evaluation.mean(lambda rollout: rollout.trace.usage.tokens),
                price_of_best_single=measured.price_of_best_single(label),
                gaps=measured.gaps(label),
                variety=measure_variety(evaluation),
                strength=strengths.get(label),
            )
            for label, evaluation in evaluations.items()
        ),
        pool=measured.pool(),
    )


def cost_of_pass(right_QR: Floats, cost_QR: Floats) -> float:
    """Cost-of-Pass (Erol et al. 2025, arXiv 2504.13359): E[dollars of an attempt] / P(right); infinite where P is 0.

    Both are means over all questions, each with the same weight. With [1, R] it is the cost of pass of one question.
    Answers that could not be graded (NaN) count in neither.
    """
    known_QR = ~np.isnan(right_QR)
    asked = known_QR.any(axis=1)
    if not asked.any():
        return math.inf
    counts_Q = known_QR[asked].sum(axis=1)
    right = float((np.nan_to_num(right_QR[asked]).sum(axis=1) / counts_Q).mean())
    usd = float((np.where(known_QR, np.nan_to_num(cost_QR), 0.0)[asked].sum(axis=1) / counts_Q).mean())
    return usd / right if right > 0 else math.inf


@dataclass(frozen=True)
class _Measured:
    """The evaluations as arrays."""

    right_PQR: Mapping[str, Floats]
    accuracy_PQ: Mapping[str, Floats]
    """Share of right answers by question; NaN: none was graded."""
    cost_PQ: Mapping[str, Floats]
    singles: Mapping[str, str]
    """Worker -> label."""
    best: str | None
    """The best single worker, the most accurate on these questions, which flatters it; None: there are none."""

    @classmethod
    def of(cls, evaluations: Mapping[str, Evaluation], singles: Mapping[str, str]) -> _Measured:
        unknown = [label for label in singles.values() if label not in evaluations]
        if unknown:
            raise UsageError(f"{unknown[0]!r} is the label of no single worker that was evaluated.")
        right = {label: right_by_repeat(evaluation) for label, evaluation in evaluations.items()}
        accuracy = {label: mean_over_repeats(right_QR) for label, right_QR in right.items()}
        cost = {label: mean_over_repeats(cost_by_repeat(one)) for label, one in evaluations.items()}
        best = max(singles, key=lambda worker: _mean(accuracy[singles[worker]]), default=None)
        return cls(right, accuracy, cost, singles, best)

    def price_of_best_single(self, label: str) -> PriceShare | None:
        """Questions to which any planner's answer could not be graded are left out, so that prices compare."""
        known_Q = ~np.isnan(np.stack([*self.accuracy_PQ.values()])).any(axis=0)
        if self.best is None or label in self.singles.values() or not known_Q.any():
            return None
        best = self.singles[self.best]
        return price_of_accuracy(
            self.accuracy_PQ[label][None, known_Q],
            self.cost_PQ[label][None, known_Q],
            (self.accuracy_PQ[best][known_Q], self.cost_PQ[best][known_Q]),
        )

    def gaps(self, label: str) -> Gaps | None:
        if self.best is None:
            return None
        return measure_gaps(
            self.right_PQR[label], self._right_of_singles(), list(self.singles).index(self.best)
        )

    def pool(self) -> PoolChannels | None:
        if self.best is None or len(self.singles) < 2:
            return None
        return measure_channels(
            [*self.singles], self._right_of_singles(), best=list(self.singles).index(self.best)
        )

    def _right_of_singles(self) -> Floats:
        """[W, Q, R]"""
        return stacked([self.right_PQR[label] for label in self.singles.values()])

    def ranking(self) -> tuple[Strength, ...]:
        graded_PQ = np.stack([*self.accuracy_PQ.values()])
        graded_PQ = graded_PQ[:, ~np.isnan(graded_PQ).any(axis=0)]
        return rank_planners([*self.accuracy_PQ], graded_PQ) if len(graded_PQ) > 1 and graded_PQ.size else ()


def _mean(shares_Q: Floats) -> float:
    return float(np.nanmean(shares_Q)) if not np.isnan(shares_Q).all() else 0.0
