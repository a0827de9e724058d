"""Bradley-Terry strengths order planners by the questions on which they differ."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from podium_research.measures.ranking import bradley_terry, rank_planners, wins


def test_two_planners_worked_by_hand():
    # Half a win for each is added: 9.5 to 4.5.
    low, high = bradley_terry(np.array([[0.0, 4.0], [9.0, 0.0]]))
    assert high - low == pytest.approx(math.log(9.5 / 4.5))
    assert high + low == pytest.approx(0.0)


def test_strengths_are_those_of_a_logistic_regression():
    counts = np.random.default_rng(6).integers(0, 30, size=(5, 5)) * (1.0 - np.eye(5))
    rows, weights, labels = [], [], []
    for one in range(5):
        for other in range(5):
            if one != other:
                pair = np.eye(5)[one] - np.eye(5)[other]
                rows += [pair, -pair]
                weights += [counts[one, other] + 0.5] * 2
                labels += [1, 0]
    fitted = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10, max_iter=10_000)
    expected = fitted.fit(rows, labels, sample_weight=weights).coef_[0]
    assert bradley_terry(counts) == pytest.approx(expected - expected.mean(), abs=1e-3)


def test_wins_with_repeats_are_means_over_pairs_of_repeats():
    assert wins(np.array([[0.5], [1.0]])) == pytest.approx(np.array([[0.25, 0.0], [0.5, 0.0]]))


def test_a_planner_better_for_certain_is_first_and_equals_share_ranks():
    rng = np.random.default_rng(8)
    right_PQ = (rng.random((3, 400)) < np.array([[0.5], [0.9], [0.5]])).astype(float)
    first, second, third = rank_planners(["a", "best", "b"], right_PQ)
    assert (first.label, first.rank, first.best_rank, first.worst_rank) == ("best", 1, 1, 1)
    assert (second.best_rank, second.worst_rank, third.best_rank, third.worst_rank) == (2, 3, 2, 3)
    assert first.strength.low > second.strength.high
