"""Workers that err together are one worker."""

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.decomposition import PCA

from podium.evals.measures.pool_channels import (
    amplification,
    effective_channels,
    error_correlation,
    measure_channels,
)


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


def test_three_independent_voters_amplify_a_weak_signal_by_one_and_a_half():
    # The majority of three is right with 3p² - 2p³, whose slope at 1/2 is 3/2.
    assert amplification(0.0, 3) == pytest.approx(1.5)
    assert amplification(1.0, 3) == 1.0
    assert amplification(0.5, 3, kept=0.7) == pytest.approx(0.7 * 1.25)


def test_a_team_cannot_help_where_the_best_worker_is_right_whenever_any_is():
    best, other = [1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 0, 1]
    pool = measure_channels(["best", "other"], np.array([best, other], dtype=float)[:, :, None])
    assert (pool.best, pool.best_accuracy, pool.any_right.mean) == (
        "best",
        pytest.approx(2 / 3),
        pool.best_accuracy,
    )
    assert not pool.team_can_help
    assert pool.statement.startswith("A team cannot help")


def test_a_worker_that_never_errs_is_left_out_of_correlations():
    right_WQR = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 1, 0]], dtype=float)[:, :, None]
    pool = measure_channels(["sure", "b", "c"], right_WQR)
    assert pool.constant == ("sure",)
    assert pool.correlation == pytest.approx(0.0)
    assert pool.channels == pytest.approx(2.0)
