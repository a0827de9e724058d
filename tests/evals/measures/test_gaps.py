"""A planner is ahead of the best single worker, and behind an oracle that chooses one."""

import numpy as np
import pytest

from podium.evals.measures.gaps import measure_gaps


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
