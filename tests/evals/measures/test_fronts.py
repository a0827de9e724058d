"""Fronts are what a user can buy: the area, the price of an accuracy, the accuracy at a price."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from podium.evals.measures.fronts import accuracy_at, area, hull, measure_front, usd_for

POINTS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=8)


def test_the_area_worked_by_hand():
    # From 1 to 2 dollars the height rises from 0.4 to 0.6 (0.5 on average), then it stays at 0.6 until 4.
    points = [(1.0, 0.4), (2.0, 0.6), (3.0, 0.5)]
    assert hull(points) == [(0.0, 0.0), (1.0, 0.4), (2.0, 0.6)]
    assert area(points, 1.0, 4.0) == pytest.approx((0.5 * 1 + 0.6 * 2) / 3)


def test_below_its_cheapest_planner_a_front_answers_a_share_of_the_questions():
    assert accuracy_at([(2.0, 0.8)], 0.5) == pytest.approx(0.2)
    assert usd_for([(2.0, 0.8)], 0.4) == pytest.approx(1.0)
    assert usd_for([(2.0, 0.8)], 0.9) == math.inf


@given(POINTS)
def test_the_hull_is_that_of_qhull(points):
    # (0, 0) belongs to a front, it stays flat to the right, and what lies below can be had.
    most = max(y for _, y in points)
    corners = np.array([(0, 0), *points, (21, most), (21, 0)], dtype=float)
    vertices = {tuple(corners[k]) for k in ConvexHull(corners).vertices} - {(21, most), (21, 0)}
    found = {(float(x), float(y)) for x, y in hull([(float(x), float(y)) for x, y in points])}
    assert found - vertices <= {(float(x), float(y)) for x, y in points if y == most}  # On the flat part.
    assert vertices <= found


def test_a_front_is_priced_beside_the_best_single_worker():
    right_Q = np.array([1.0, 1.0, 0.0, 0.0] * 25)
    single = right_Q, np.full(100, 2.0)
    front = measure_front(
        "half the price",
        ["it"],
        right_Q[None],
        np.full((1, 100), 1.0),
        best_single=single,
        limits_usd=(1.0, 3.0),
        equal_usd=0.5,
    )
    assert front.price_of_best_single is not None
    assert front.area is not None
    assert front.price_of_best_single.share == 0.5 == front.price_of_best_single.low
    assert front.accuracy_at_equal_usd == pytest.approx(0.25)
    assert front.area.mean == pytest.approx(0.5)
    assert front.area.low < 0.5 < front.area.high


def test_an_accuracy_that_is_never_reached_has_an_infinite_price_that_survives_json():
    worse_Q, right_Q = np.array([1.0, 0.0] * 20), np.ones(40)
    front = measure_front(
        "worse", ["it"], worse_Q[None], np.ones((1, 40)), best_single=(right_Q, np.ones(40))
    )
    assert front.price_of_best_single is not None
    assert front.price_of_best_single.share == math.inf
    assert type(front).model_validate_json(front.model_dump_json()) == front


def test_free_planners_have_a_front_and_nothing_is_a_share_of_a_price_of_nothing():
    assert hull([(0.0, 0.5), (0.0, 0.4), (1.0, 0.9)]) == [(0.0, 0.5), (1.0, 0.9)]
    free = np.ones(20), np.zeros(20)
    assert (
        measure_front("free", ["it"], *(one[None] for one in free), best_single=free).price_of_best_single
        is None
    )
