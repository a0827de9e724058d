"""Answers whose scores are given."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from podium.planners.answer_matrix import AnswerMatrix, MeasuredAnswer


def known_answers(
    workers: Sequence[str], texts: Sequence[str], score_QW: npt.ArrayLike, cost_QW: npt.ArrayLike
) -> AnswerMatrix:
    """One answer of each worker to each question. Two workers that are wrong give different answers."""
    score_WQ, cost_WQ = (np.asarray(figures, dtype=float).T.tolist() for figures in (score_QW, cost_QW))
    return AnswerMatrix.of(
        texts,
        {
            worker: [
                [MeasuredAnswer("right" if score else f"{worker} errs", score, usd)]
                for score, usd in zip(scores, dollars, strict=True)
            ]
            for worker, scores, dollars in zip(workers, score_WQ, cost_WQ, strict=True)
        },
    )
