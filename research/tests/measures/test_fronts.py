"""Fronts are what a user can buy: the area, the price of an accuracy, the accuracy at a price."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from podium_research.measures.fronts import hull, price_of_accuracy, usd_for

POINTS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=8)


def test_below_its_cheapest_planner_a_front_answers_a_share_of_questions():
    assert usd_for([(2.0, 0.8)], 0.4) == pytest.approx(1.0)
    assert usd_for([(2.0, 0.8)], 0.9) == math.inf


@given(POINTS)
def test_hull_equals_the_hull_of_qhull(points):
    # (0, 0) belongs to a front, it stays flat to the right, and what lies below can be had.
    most = max(y for _, y in points)
    corners = np.array([(0, 0), *points, (21, most), (21, 0)], dtype=float)
    vertices = {tuple(corners[k]) for k in ConvexHull(corners).vertices} - {(21, most), (21, 0)}
    found = {(float(x), float(y)) for x, y in hull([(float(x), float(y)) for x, y in points])}
    assert found - vertices <= {(float(x), float(y)) for x, y in points if y == most}  # On the flat part.
    assert vertices <= found


def test_a_front_is_priced_beside_the_best_single_worker():
    right_Q = np.array([1.0, 1.0, 0.0, 0.0] * 25)
    price = price_of_accuracy(right_Q[None], np.full((1, 100), 1.0), (right_Q, np.full(100, 2.0)))
    assert price is not None
    assert price.share == 0.5 == price.low


def test_an_accuracy_that_is_never_reached_has_an_infinite_price():
    worse_Q = np.array([1.0, 0.0] * 20)
    price = price_of_accuracy(worse_Q[None], np.ones((1, 40)), (np.ones(40), np.ones(40)))
    assert price is not None
    assert price.share == math.inf


def test_free_planners_have_a_front_but_no_price_of_accuracy():
    assert hull([(0.0, 0.5), (0.0, 0.4), (1.0, 0.9)]) == [(0.0, 0.5), (1.0, 0.9)]
    free = np.ones(20), np.zeros(20)
    assert price_of_accuracy(*(one[None] for one in free), free) is None
