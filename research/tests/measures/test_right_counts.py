"""The gap to an oracle is told apart by how many workers were right."""

import numpy as np
import pytest

from podium_research.measures.repeats import mean_over_repeats, stacked
from podium_research.measures.right_counts import measure_right_counts


def test_counts_worked_by_hand():
    single_WQR = np.array([[[1], [1], [0], [0]], [[1], [0], [0], [1]]], dtype=float)
    planner_QR = np.array([[1], [0], [1], [1]], dtype=float)
    none, one, both = measure_right_counts(planner_QR, single_WQR, best=0)
    assert (none.workers_right, none.answers, none.accuracy, none.lost) == (0, 1, 1.0, -0.25)
    assert (one.workers_right, one.answers, one.accuracy, one.best_single) == (1, 2, 0.5, 0.5)
    assert (one.lost, both.lost) == (0.25, 0.0)


def test_the_parts_add_up_to_the_gap_also_with_repeats_and_failed_graders():
    rng = np.random.default_rng(2)
    single_WQR = rng.integers(0, 2, size=(3, 40, 2)).astype(float)
    planner_QR = rng.integers(0, 2, size=(40, 3)).astype(float)
    planner_QR[3, 1] = single_WQR[1, 5, 0] = np.nan
    planner_QR[7] = np.nan
    parts = measure_right_counts(planner_QR, single_WQR, best=1)
    all_XQR = stacked([planner_QR, *single_WQR])
    all_XQR = np.where(np.isnan(all_XQR).any(axis=0), np.nan, all_XQR)
    behind_Q = mean_over_repeats(all_XQR[1:].max(axis=0)) - mean_over_repeats(all_XQR[0])
    assert sum(part.lost for part in parts) == pytest.approx(np.nanmean(behind_Q))
    assert sum(part.answers for part in parts) == 2 * 40 - 4


def test_without_a_judged_answer_nothing_is_counted():
    assert measure_right_counts(np.full((2, 1), np.nan), np.ones((2, 2, 1)), best=0) == ()
