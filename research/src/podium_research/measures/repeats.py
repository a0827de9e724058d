"""An evaluation as an array of questions and repeats, which the measures of this package start from.

An entry is NaN where a question was repeated less often, or where the grader could not judge the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.evals.evaluation import Evaluation
from podium.planners.answer_matrix import Floats


def right_by_repeat(evaluation: Evaluation) -> Floats:
    """[Q, R]: 1 where the answer is right, 0 where it is wrong."""
    rows = list(evaluation.by_question.values())
    right_QR = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for question, rollouts in enumerate(rows):
        for repeat, rollout in enumerate(rollouts):
            if rollout.grade.failure is None:
                right_QR[question, repeat] = rollout.correct
    return right_QR


def mean_over_repeats(values_QR: Floats) -> Floats:
    """[Q]: the mean of each question; NaN where no repeat has a value."""
    known_Q = (~np.isnan(values_QR)).sum(axis=1)
    means: Floats = np.where(known_Q > 0, np.nansum(values_QR, axis=1) / np.maximum(known_Q, 1), np.nan)
    return means


def stacked(arrays: Sequence[Floats]) -> Floats:
    """[.., Q, R]: arrays over the same questions, cut to the repeats that all of them have."""
    repeats = min(array.shape[1] for array in arrays)
    return np.stack([array[:, :repeats] for array in arrays])
