"""The gap to an oracle, told apart by how many single workers were right.

A planner chooses badly where several were right and it was not; no choice helps where none was.
"""

from __future__ import annotations

import numpy as np

from podium.planners.answer_matrix import Floats
from podium.types import FrozenModel
from podium_research.measures.repeats import stacked


class RightCount(FrozenModel):
    """The questions to which the same number of single workers gave a right answer."""

    workers_right: int
    answers: int
    """Answers of the planner to these questions: a question counts once for each repeat."""
    accuracy: float
    """The planner's share of right answers among them."""
    best_single: float
    """The share of the best single worker."""
    lost: float
    """How much of its accuracy over all questions the planner loses to the oracle here; negative: it is ahead. Over all
    counts this adds up to the gap to the oracle (Gap@oracle of arXiv 2601.07206)."""


def measure_right_counts(right_QR: Floats, single_WQR: Floats, best: int) -> tuple[RightCount, ...]:
    """The rows from no right worker to all. Empty if no question has answers of all workers.

    Args:
        right_QR: whether the planner was right; NaN: not known.
        single_WQR: the same for each single worker on the same questions. Repeat r of the planner is compared with
            repeat r of the workers.
        best: number of the best single worker.
    """
    repeats = min(right_QR.shape[1], single_WQR.shape[2])
    all_XQR = stacked([right_QR[:, :repeats], *single_WQR[:, :, :repeats]])
    known_QR = ~np.isnan(all_XQR).any(axis=0)
    if not known_QR.any():
        return ()
    planner_N, single_WN = all_XQR[0][known_QR], all_XQR[1:, known_QR]
    # Each question has the same weight, however many of its repeats are known.
    weight_N = np.broadcast_to(1 / np.maximum(known_QR.sum(axis=1, keepdims=True), 1), known_QR.shape)[
        known_QR
    ]
    weight_N = weight_N / weight_N.sum()
    counts_N = single_WN.sum(axis=0).astype(int)
    rows = []
    for count in range(len(single_WN) + 1):
        here_N = counts_N == count
        if here_N.any():
            missing_N = float(count > 0) - planner_N[here_N]
            rows.append(
                RightCount(
                    workers_right=count,
                    answers=int(here_N.sum()),
                    accuracy=float(np.average(planner_N[here_N], weights=weight_N[here_N])),
                    best_single=float(np.average(single_WN[best][here_N], weights=weight_N[here_N])),
                    lost=float(weight_N[here_N] @ missing_N),
                )
            )
    return tuple(rows)
