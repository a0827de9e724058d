"""One value holds all measures, and None where an evaluation lacks what a measure needs."""

import math

import numpy as np
import pytest
from graded import column, graded
from scipy.stats import entropy
from sklearn.decomposition import PCA

from podium.errors import UsageError
from podium.evals.measures import (
    cost_of_pass,
    effective_channels,
    error_correlation,
    measure,
    measure_diversity,
    measure_gaps,
)


def test_each_planner_is_measured_beside_the_single_workers():
    evaluations = {
        "it": graded("made", column(True, True, True, False), usd=3.0),
        "a alone": graded("single:a", column(True, True, False, False), usd=2.0),
        "b alone": graded("single:b", column(False, True, False, True)),
    }
    found = measure(evaluations, singles={"a": "a alone", "b": "b alone"})
    assert found.pool is not None
    assert (found.pool.workers, found.pool.best) == (2, "a")
    it, _, _ = found.planners
    assert it.cost_of_pass == pytest.approx(4.0)
    assert it.gaps is not None
    assert it.gaps.ahead_of_best is not None
    assert it.gaps.ahead_of_best.mean == pytest.approx(0.25)


def test_what_is_missing_is_none():
    (planner,) = measure({"it": graded("made", column(True, False))}, singles={}).planners
    assert planner.gaps is None
    ungraded = {"a alone": graded("single:a", column(None)), "b alone": graded("single:b", column(True))}
    found = measure(ungraded, singles={"a": "a alone", "b": "b alone"})
    assert found.pool is None
    assert [one.gaps for one in found.planners] == [None, None]
    assert found.planners[0].cost_of_pass == math.inf


def test_what_cannot_be_measured_is_refused():
    it = graded("made", column(True))
    for evaluations, singles, says in (
        ({"it": it}, {"c": "c alone"}, "'c alone' is the label of no single worker"),
        ({"it": it, "other": graded("made", column(True, False))}, {}, "different questions"),
        ({}, {}, "no evaluations"),
    ):
        with pytest.raises(UsageError, match=says):
            measure(evaluations, singles=singles)


def test_cost_of_pass_worked_by_hand():
    assert cost_of_pass(np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]])) == pytest.approx(4.0)
    assert cost_of_pass(np.array([[0.0], [0.0]]), np.ones((2, 1))) == math.inf
    ungraded = np.array([[1.0, np.nan], [0.0, 0.0]]), np.array([[2.0, 50.0], [4.0, 6.0]])
    assert cost_of_pass(*ungraded) == pytest.approx((2 + 5) / 2 / 0.5)


def test_gaps_worked_by_hand():
    single_WQR = np.array([[[1], [1], [0], [0]], [[1], [0], [0], [1]]], dtype=float)
    planner_QR = np.array([[1], [0], [1], [1]], dtype=float)
    gaps = measure_gaps(planner_QR, single_WQR, best=0)
    assert gaps is not None
    assert gaps.ahead_of_best is not None
    assert gaps.ahead_of_best.mean == pytest.approx(0.25)
    assert gaps.behind_oracle is not None
    assert gaps.behind_oracle.mean == pytest.approx(0.0)


def test_without_a_judged_answer_there_is_no_gap():
    assert measure_gaps(np.full((2, 1), np.nan), np.ones((2, 2, 1)), best=0) is None


def test_equal_workers_are_one_channel_and_independent_ones_many():
    right_N = np.array([1.0, 0.0, 1.0, 1.0])
    assert effective_channels(np.stack([right_N] * 3)) == pytest.approx(1.0)
    independent = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], dtype=float)
    assert effective_channels(independent) == pytest.approx(2.0)
    assert error_correlation(independent) == pytest.approx(0.0)


def test_the_channels_are_the_entropy_of_the_principal_components():
    right_WN = np.random.default_rng(4).integers(0, 2, size=(5, 60)).astype(float)
    right_WN[1] = np.where(np.arange(60) % 3 > 0, right_WN[0], right_WN[1])
    standard = (right_WN - right_WN.mean(axis=1, keepdims=True)) / right_WN.std(axis=1, keepdims=True)
    shares = PCA().fit(standard.T).explained_variance_ratio_
    assert effective_channels(right_WN) == pytest.approx(2 ** entropy(shares, base=2))


def test_two_workers_with_the_correlation_half_worked_by_hand():
    # The eigenvalues 1.5 and 0.5 are shares of 3/4 and 1/4: 0.811 bits.
    right_WN = np.array([[1, 1, 1, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0, 0, 1]], dtype=float)
    assert error_correlation(right_WN) == pytest.approx(0.5)
    assert effective_channels(right_WN) == pytest.approx(2**0.8113, abs=1e-3)


def test_a_team_cannot_help_where_the_best_worker_is_right_whenever_any_is():
    best, other = [1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 0, 1]
    pool = measure_diversity(["best", "other"], np.array([best, other], dtype=float)[:, :, None])
    assert pool is not None
    assert (pool.best, pool.best_accuracy, pool.any_right.mean) == (
        "best",
        pytest.approx(2 / 3),
        pool.best_accuracy,
    )
    assert not pool.team_can_help
    assert pool.statement.startswith("A team cannot help")


def test_a_worker_that_never_errs_is_left_out_of_correlations():
    right_WQR = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 1, 0]], dtype=float)[:, :, None]
    pool = measure_diversity(["sure", "b", "c"], right_WQR)
    assert pool is not None
    assert pool.correlation == pytest.approx(0.0)
    assert pool.channels == pytest.approx(2.0)
