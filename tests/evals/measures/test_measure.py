"""One value holds all measures, and None where an evaluation lacks what a measure needs."""

import math

import numpy as np
import pytest
from graded import column, graded

from podium.errors import UsageError
from podium.evals.measures import measure
from podium.evals.measures.measures import cost_of_pass


def test_each_planner_is_measured_beside_the_single_workers():
    evaluations = {
        "it": graded("made", column(True, True, True, False), usd=3.0),
        "a alone": graded("single:a", column(True, True, False, False), usd=2.0),
        "b alone": graded("single:b", column(False, True, False, True)),
    }
    found = measure(evaluations, singles={"a": "a alone", "b": "b alone"})
    assert found.pool is not None
    assert found.pool.workers == ("a", "b")
    it, best, _ = found.planners
    assert it.cost_of_pass == pytest.approx(4.0)
    assert it.gaps is not None
    assert it.gaps.ahead_of_best is not None
    assert it.gaps.ahead_of_best.mean == pytest.approx(0.25)
    # Two thirds of its price buy the best single worker's accuracy, and that worker costs two dollars.
    assert it.price_of_best_single is not None
    assert it.price_of_best_single.share == pytest.approx(1.0)
    assert best.price_of_best_single is None
    assert {one.strength.rank for one in found.planners if one.strength} >= {1, 2}


def test_what_is_missing_is_none():
    (planner,) = measure({"it": graded("made", column(True, False))}, singles={}).planners
    assert (planner.gaps, planner.strength, planner.price_of_best_single) == (None, None, None)
    ungraded = measure(
        {"it": graded("made", column(None)), "other": graded("made", column(True))}, singles={}
    )
    assert ungraded.pool is None
    assert {one.strength for one in ungraded.planners} == {None}


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
