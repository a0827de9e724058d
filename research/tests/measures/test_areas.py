"""The area under a front, and the accuracy that it gives at a price."""

import numpy as np
import pytest

from podium_research.measures.areas import accuracy_at, area, measure_front
from podium_research.measures.fronts import hull


def test_the_area_worked_by_hand():
    # From 1 to 2 dollars the height rises from 0.4 to 0.6 (0.5 on average), then it stays at 0.6 until 4.
    points = [(1.0, 0.4), (2.0, 0.6), (3.0, 0.5)]
    assert hull(points) == [(0.0, 0.0), (1.0, 0.4), (2.0, 0.6)]
    assert area(points, 1.0, 4.0) == pytest.approx((0.5 * 1 + 0.6 * 2) / 3)


def test_below_its_cheapest_planner_a_front_answers_a_share_of_questions():
    assert accuracy_at([(2.0, 0.8)], 0.5) == pytest.approx(0.2)


def test_a_front_has_an_area_with_an_interval():
    right_Q = np.array([1.0, 1.0, 0.0, 0.0] * 25)
    front = measure_front(
        "it", ["it"], right_Q[None], np.full((1, 100), 1.0), limits_usd=(1.0, 3.0), equal_usd=0.5
    )
    assert front.area is not None
    assert front.accuracy_at_equal_usd == pytest.approx(0.25)
    assert front.area.mean == pytest.approx(0.5)
    assert front.area.low < 0.5 < front.area.high
