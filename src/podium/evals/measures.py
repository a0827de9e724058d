"""The further measures that a report prints, of evaluations on the same questions.

Arrays are [question, repeat]. A place is NaN where a question was repeated less often, or where the grader could not
judge the answer. A measure is None where the evaluations lack what it needs. docs/evaluation.md says when each
misleads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.errors import UsageError
from podium.evals.evaluation import Evaluation
from podium.evals.stats import Interval, accuracy_interval, paired_difference
from podium.ratings.answers import Floats
from podium.rollout import Rollout

_LEAST_GAIN = 0.01
"""A smaller gain of the oracle is not worth a team."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """A planner beside its bounds, in points of accuracy (LLMRouterBench, Li et al. 2026, arXiv 2601.07206)."""

    ahead_of_best: Interval | None
    """Gap@best: its accuracy minus that of the best single worker, paired by question; None: one question."""
    behind_oracle: Interval | None
    """Gap@oracle: the accuracy of who takes a right worker wherever there is one, minus its own; None: one question.
    It bounds planners that call one worker once. Plans of several steps may pass it."""


@dataclass(frozen=True, slots=True)
class PlannerMeasures:
    """All measures of one planner."""

    label: str
    cost_of_pass: float
    """Dollars a right answer; infinite where no answer was right."""
    tokens: float
    """Input and output tokens a question, of workers and planner."""
    gaps: Gaps | None
    """None: no single workers, or no answer that is known of all."""


@dataclass(frozen=True, slots=True)
class PoolDiversity:
    """How much the errors of a pool's workers coincide, and so whether a team can help."""

    best: str
    """The best single worker: the most accurate on these questions."""
    best_accuracy: float
    any_right: Interval
    """The share of questions to which any worker gave a right answer: the oracle's accuracy."""
    channels: float
    """K*, the effective number of workers: 1 if all are right on the same questions, the number of workers if their
    errors are independent."""
    correlation: float | None
    """The mean correlation of the errors of two workers; None: fewer than two workers vary."""
    workers: int

    @property
    def team_can_help(self) -> bool:
        """Whether choosing or combining these workers could beat the best one at all."""
        return self.any_right.mean - self.best_accuracy >= _LEAST_GAIN

    @property
    def statement(self) -> str:
        """What that means for a team of these workers, in one or two sentences."""
        if not self.team_can_help:
            return (
                f"A team cannot help on these questions: {self.best} alone is right on {self.best_accuracy:.1%}, and "
                f"any of the workers on {self.any_right.mean:.1%}."
            )
        gain = self.any_right.mean - self.best_accuracy
        says = (
            f"A team may help: a planner that always chose a worker that is right would gain {gain * 100:.1f} points "
            f"on {self.best} alone."
        )
        if self.correlation is None:
            return says
        return (
            f"{says} The {self.workers} workers count as {self.channels:.1f} independent ones (correlation of their "
            f"errors {self.correlation:.2f})."
        )


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures of several planners on the same questions, with the same pool."""

    planners: tuple[PlannerMeasures, ...]
    """The planners, in the order of the evaluations."""
    pool: PoolDiversity | None
    """None: fewer than two single workers, or no answer is known of all."""


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
    unknown = [label for label in singles.values() if label not in evaluations]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is the label of no single worker that was evaluated.")
    right = {label: right_by_repeat(evaluation) for label, evaluation in evaluations.items()}
    single_WQR = stacked([right[label] for label in singles.values()]) if singles else np.empty((0, 0, 0))
    best = int(np.argmax([_accuracy(right_QR) for right_QR in single_WQR])) if singles else None
    return Measures(
        planners=tuple(
            PlannerMeasures(
                label=label,
                cost_of_pass=cost_of_pass(right[label], cost_by_repeat(evaluation)),
                tokens=evaluation.mean(lambda rollout: rollout.trace.usage.tokens),
                gaps=None if best is None else measure_gaps(right[label], single_WQR, best),
            )
            for label, evaluation in evaluations.items()
        ),
        pool=measure_diversity([*singles], single_WQR) if len(singles) > 1 else None,
    )


def cost_of_pass(right_QR: Floats, cost_QR: Floats) -> float:
    """Cost-of-Pass (Erol et al. 2025, arXiv 2504.13359): E[dollars of an attempt] / P(right); infinite where P is 0.

    Both are means over all questions, each with the same weight. Answers that could not be graded (NaN) count in
    neither.
    """
    known_QR = ~np.isnan(right_QR)
    asked = known_QR.any(axis=1)
    if not asked.any():
        return math.inf
    right = float(mean_over_repeats(right_QR[asked]).mean())
    usd = float(mean_over_repeats(np.where(known_QR, cost_QR, np.nan)[asked]).mean())
    return usd / right if right > 0 else math.inf


def measure_gaps(right_QR: Floats, single_WQR: Floats, best: int) -> Gaps | None:
    """The gaps of one planner; None: no answer is known of all.

    Args:
        right_QR: whether the planner was right.
        single_WQR: the same for each single worker on the same questions. Repeat r of the planner is compared with
            repeat r of the workers.
        best: number of the best single worker.
    """
    all_XQR = stacked([right_QR, *single_WQR])
    known_QR = ~np.isnan(all_XQR).any(axis=0)
    if not known_QR.any():
        return None
    all_XQR = np.where(known_QR, all_XQR, np.nan)
    known_Q = ~np.isnan(mean_over_repeats(all_XQR[0]))
    compared = (all_XQR[0], all_XQR[1 + best], all_XQR[1:].max(axis=0))
    planner_Q, best_Q, oracle_Q = (mean_over_repeats(values)[known_Q].tolist() for values in compared)
    return Gaps(paired_difference(planner_Q, best_Q), paired_difference(oracle_Q, planner_Q))


def measure_diversity(workers: Sequence[str], right_WQR: Floats) -> PoolDiversity | None:
    """The diversity of a pool's workers; None: no answer is known of all.

    Args:
        right_WQR: whether each worker was right.
    """
    known_QR = ~np.isnan(right_WQR.sum(axis=0))
    if not known_QR.any():
        return None
    known_WQR = np.where(known_QR, right_WQR, np.nan)
    accuracy_W = [_accuracy(right_QR) for right_QR in known_WQR]
    any_Q = mean_over_repeats(known_WQR.max(axis=0))[known_QR.any(axis=1)]
    # No correlation is defined with a worker that is always right or always wrong.
    varying_VN = np.stack([row for row in right_WQR[:, known_QR] if row.min() < row.max()] or [np.empty(0)])
    best = int(np.argmax(accuracy_W))
    return PoolDiversity(
        best=workers[best],
        best_accuracy=accuracy_W[best],
        any_right=accuracy_interval(any_Q.tolist(), rollouts=int(known_QR.sum())),
        channels=effective_channels(varying_VN) if varying_VN.size else 1.0,
        correlation=error_correlation(varying_VN) if len(varying_VN) > 1 else None,
        workers=len(workers),
    )


def effective_channels(right_WN: Floats) -> float:
    """K* = 2^H(λ), where λ are the eigenvalues of the correlation matrix of the rows, divided by their sum, and H is
    Shannon's entropy in bits.

    From the effective channels of arXiv 2602.03794 (SafeRL-Lab/Agent-Scaling), which takes embeddings of answers. Here
    the rows say which answers are right, so no embedding model is needed, and only rightness counts as diversity.

    Args:
        right_WN: 1 or 0 for each worker and answer; each row varies.
    """
    eigenvalues = np.clip(np.linalg.eigvalsh(np.atleast_2d(np.corrcoef(right_WN))), 0, None)
    shares = eigenvalues[eigenvalues > 0] / eigenvalues.sum()
    return float(2 ** -(shares * np.log2(shares)).sum())


def error_correlation(right_WN: Floats) -> float:
    """The mean of Pearson's correlation (φ) over all pairs of rows; each row varies."""
    correlations = np.atleast_2d(np.corrcoef(right_WN))
    return float(correlations[np.triu_indices(len(correlations), k=1)].mean())


def right_by_repeat(evaluation: Evaluation) -> Floats:
    """[Q, R]: 1 where the answer is right, 0 where it is wrong."""
    return _by_repeat(evaluation, lambda r: float(r.correct) if r.grade.failure is None else np.nan)


def cost_by_repeat(evaluation: Evaluation) -> Floats:
    """[Q, R]: dollars, a cached answer with its original cost."""
    return _by_repeat(evaluation, lambda r: r.trace.uncached_usd)


def _by_repeat(evaluation: Evaluation, of: Callable[[Rollout], float]) -> Floats:
    rows = list(evaluation.by_question.values())
    values_QR = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for question, rollouts in enumerate(rows):
        values_QR[question, : len(rollouts)] = [of(rollout) for rollout in rollouts]
    return values_QR


def mean_over_repeats(values_QR: Floats) -> Floats:
    """[Q]: the mean of each question; NaN where no repeat has a value."""
    known_Q = (~np.isnan(values_QR)).sum(axis=1)
    means: Floats = np.where(known_Q > 0, np.nansum(values_QR, axis=1) / np.maximum(known_Q, 1), np.nan)
    return means


def _accuracy(right_QR: Floats) -> float:
    shares_Q = mean_over_repeats(right_QR)
    return float(np.nanmean(shares_Q)) if not np.isnan(shares_Q).all() else 0.0


def stacked(arrays: Sequence[Floats]) -> Floats:
    """[.., Q, R]: arrays over the same questions, cut to the repeats that all of them have."""
    repeats = min(array.shape[1] for array in arrays)
    return np.stack([array[:, :repeats] for array in arrays])


def check_same_questions(evaluations: Iterable[Evaluation]) -> None:
    """Raise `UsageError` unless all evaluations have the same questions in the same order."""
    first, *others = evaluations
    for other in others:
        if list(other.by_question) != list(first.by_question):
            raise UsageError(
                f"{first.planner} and {other.planner} were evaluated on different questions: evaluate all planners on "
                "the same tasks."
            )
