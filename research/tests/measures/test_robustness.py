"""A paraphrase should change neither the answer nor the plan."""

import pytest

from evals.graded_evaluations import graded
from podium.errors import UsageError
from podium_research.measures.robustness import measure_robustness

PAIRS = {"q0 again": "q0", "q1 again": "q1", "q2 again": "q2"}


def test_pairs_worked_by_hand():
    verdicts = {
        "q0": [True],
        "q0 again": [True],
        "q1": [True],
        "q1 again": [False],
        "q2": [None],
        "q2 again": [True],
    }
    plans = {"q0": (0, 1), "q0 again": (0, 1), "q1": (0,), "q1 again": (1,)}
    found = measure_robustness(graded("made", verdicts, plans=plans), PAIRS)
    assert found is not None
    assert (found.pairs, found.accuracy, found.paraphrased, found.same_verdict) == (2, 1.0, 0.5, 0.5)
    assert found.same_plan == pytest.approx(2 / 3)
    assert found.change is not None
    assert found.change.mean == -0.5


def test_a_pair_that_was_not_evaluated_is_refused():
    with pytest.raises(UsageError, match="'q1 again' of a paraphrase was not evaluated"):
        measure_robustness(graded("made", {"q1": [True]}), {"q1 again": "q1"})
