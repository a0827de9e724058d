"""On simulated answers with known effects, intervals and tests err as often as they say (runs/paired_tests.py)."""

import importlib.util
import sys
from pathlib import Path

import pytest

_SIMULATIONS = 300
"""Of each setting; the standard error of a share of 5 % is then 1.3 points."""


@pytest.fixture(scope="module")
def paired_tests():
    path = Path(__file__).parents[2] / "runs" / "paired_tests.py"
    spec = importlib.util.spec_from_file_location("paired_tests", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["paired_tests"] = module  # Its dataclasses look their module up.
    spec.loader.exec_module(module)
    yield module
    del sys.modules["paired_tests"]


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_intervals_hold_the_true_difference_and_few_false_ones_are_found(paired_tests, repeats, effect):
    found = paired_tests.errors(paired_tests.Setting(100, repeats, "seldom", (effect,)), _SIMULATIONS)
    assert 0.91 <= found.covered <= 0.99
    if effect == 0:
        assert 0.01 <= found.called <= 0.09


@pytest.mark.parametrize("repeats", [1, 3])
def test_holm_correction_keeps_false_positives_of_a_table_rare(paired_tests, repeats):
    found = paired_tests.errors(paired_tests.Setting(100, repeats, "often", (0.0,) * 10), _SIMULATIONS)
    assert found.any_false > 0.15
    assert found.any_false_by_holm <= 0.09
