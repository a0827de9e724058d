"""An order over planners from the questions on which they differ: the Bradley-Terry model, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.evals.stats import Interval
from podium.planners.answer_matrix import Floats
from podium.types import FrozenModel

_RESAMPLES = 500
_PRIOR = 0.5
"""Wins that each planner of a pair is given beforehand. Without them a planner that never lost would be infinitely
strong."""
_STEPS = 25


class Strength(FrozenModel):
    """The strength and the rank of one planner."""

    label: str
    strength: Interval
    """Log-odds; the mean of all planners is 0. Where one planner is right and the other wrong, the first is the one
    that is right with the probability 1 / (1 + exp(other - strength))."""
    rank: int
    """The rank by strength, from 1."""
    best_rank: int
    worst_rank: int
    """Between these two ranks it is in 95 % of the resamples."""


def rank_planners(labels: Sequence[str], right_PQ: Floats) -> tuple[Strength, ...]:
    """The strengths of P planners, strongest first. Intervals come from a bootstrap over questions.

    Args:
        right_PQ: share of right answers of each planner to each question.
    """
    questions = right_PQ.shape[1]
    rng = np.random.default_rng(list(b"measures/ranking"))
    weights_BQ = rng.multinomial(questions, np.full(questions, 1 / questions), size=_RESAMPLES)
    strength_P = bradley_terry(wins(right_PQ))
    drawn_BP = bradley_terry(np.stack([wins(right_PQ, weights_Q) for weights_Q in weights_BQ]))
    low_P, high_P = np.quantile(drawn_BP, [0.025, 0.975], axis=0)
    # A planner's rank is 1 and the number of stronger planners.
    ranks_BP = 1 + (drawn_BP[:, None, :] > drawn_BP[:, :, None]).sum(axis=2)
    best_P = np.quantile(ranks_BP, 0.025, axis=0, method="lower").astype(int)
    worst_P = np.quantile(ranks_BP, 0.975, axis=0, method="higher").astype(int)
    order = np.argsort(-strength_P, kind="stable")
    return tuple(
        Strength(
            label=labels[p],
            strength=Interval(mean=float(strength_P[p]), low=float(low_P[p]), high=float(high_P[p])),
            rank=1 + int((strength_P > strength_P[p]).sum()),
            best_rank=int(best_P[p]),
            worst_rank=int(worst_P[p]),
        )
        for p in order
    )


def wins(right_PQ: Floats, weights_Q: Floats | None = None) -> Floats:
    """[P, P]: on how many questions the row's planner was right and the column's wrong. With repeats, the mean over all
    pairs of repeats. A question counts as often as its weight says."""
    weighted_PQ = right_PQ if weights_Q is None else right_PQ * weights_Q
    counts: Floats = weighted_PQ @ (1 - right_PQ).T
    return counts


def bradley_terry(wins_PP: Floats) -> Floats:
    """[.., P]: log-strengths s of the Bradley-Terry model (1952), P(i beats j) = 1 / (1 + exp(s_j - s_i)), by maximum
    likelihood with half a win for each planner of each pair; their mean is 0.

    Args:
        wins_PP: [.., P, P]; leading dimensions are separate tables.
    """
    planners = wins_PP.shape[-1]
    won = (wins_PP + _PRIOR) * (1 - np.eye(planners))
    games = won + np.swapaxes(won, -1, -2)
    strength = np.zeros(wins_PP.shape[:-1])
    for _ in range(_STEPS):  # Newton's method; the likelihood is concave.
        expected = 1 / (1 + np.exp(strength[..., None, :] - strength[..., :, None]))
        gradient = (won - games * expected).sum(axis=-1)
        curvature = games * expected * (1 - expected)
        hessian = np.eye(planners) * curvature.sum(axis=-1)[..., None] - curvature
        # Only differences matter: the constant that is added to the matrix keeps the mean at 0.
        step = np.linalg.solve(hessian + 1 / planners, gradient[..., None])[..., 0]
        strength = strength + np.clip(step, -1, 1)
    result: Floats = strength - strength.mean(axis=-1, keepdims=True)
    return result
