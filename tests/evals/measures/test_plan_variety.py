"""Plans that never change have no entropy."""

import pytest
from graded import column, graded
from scipy.stats import entropy

from podium.evals.measures.plan_variety import measure_variety


def test_a_constant_plan_has_no_entropy():
    variety = measure_variety(graded("made", column(True, False, True)))
    assert variety is not None
    assert (variety.workers_bits, variety.commonest_plan) == (0.0, 1.0)


def test_the_entropy_of_workers_is_that_of_scipy():
    plans = {"q0": (0,), "q1": (0,), "q2": (0, 1), "q3": (1, 2)}
    variety = measure_variety(graded("made", column(True, True, True, True), plans=plans))
    assert variety is not None
    assert variety.workers_bits == pytest.approx(entropy([3, 2, 1], base=2))
    assert variety.commonest_plan == 0.5
