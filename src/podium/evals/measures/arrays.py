"""Evaluations as arrays [question, repeat], which the measures are computed from.

A place is NaN where a question was repeated less often, or where the grader could not judge the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.evals.evaluation import Evaluation
from podium.rollout import Rollout

Floats = npt.NDArray[np.float64]


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
