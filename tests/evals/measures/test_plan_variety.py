"""Plans that never change have no entropy."""

import pytest
from graded import column, graded
from scipy.stats import entropy

from podium.evals.measures.plan_variety import measure_variety


def test_a_constant_plan_has_no_entropy():
    variety = measure_variety(graded("made", column(True, False, True)))
    assert variety is not None
    assert (variety.workers_bits, variety.topologies_bits, variety.commonest_plan) == (0.0, 0.0, 1.0)


def test_entropies_of_workers_and_topologies():
    plans = {"q0": (0,), "q1": (0,), "q2": (0, 1), "q3": (1, 2)}
    variety = measure_variety(graded("made", column(True, True, True, True), plans=plans))
    assert variety is not None
    assert variety.workers == {"a": 0.5, "b": pytest.approx(1 / 3), "c": pytest.approx(1 / 6)}
    assert variety.workers_bits == pytest.approx(entropy([3, 2, 1], base=2))
    assert variety.topologies == {"single": 0.5, "chain": 0.5}
    assert variety.topologies_bits == 1.0
    assert (variety.different_plans, variety.commonest_plan) == (3, 0.5)
