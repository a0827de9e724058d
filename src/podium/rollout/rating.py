"""Rates workers by what a recording holds of them: for each kind of question how many they answered rightly."""

from __future__ import annotations

import numpy as np

from podium.rollout.answers import Answers
from podium.workers.ratings import Kinds, Ratings, Tally

_FIGURES = 5
"""Significant figures of dollars."""


def rate(answers: Answers, kinds: Kinds) -> Ratings:
    """The tallies of all workers over these kinds."""
    empty = Ratings(kinds=kinds, workers={})
    kind_Q = np.array([empty.kind_of(text) for text in answers.texts])
    return Ratings(
        kinds=kinds,
        workers={
            worker: {
                str(kind): Tally(
                    right=round(float(answers.score_QW[kind_Q == kind, number].sum()), 3),
                    questions=int((kind_Q == kind).sum()),
                    cost_usd=float(f"{answers.cost_QW[kind_Q == kind, number].sum():.{_FIGURES}g}"),
                )
                for kind in np.unique(kind_Q)
            }
            for number, worker in enumerate(answers.workers)
        },
    )
