"""Intervals cover what they claim, and repeats of a question are not mistaken for questions."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from podium.evals.stats import (
    accuracy_interval,
    adjusted_p_values,
    mean_interval,
    paired_difference,
    permutation_test,
)

SHARES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=60)


@given(SHARES)
@example([0.0] * 6)
@example([1.0] * 20)
def test_accuracy_interval_contains_its_mean_and_stays_in_0_to_1(scores):
    found = accuracy_interval(scores, rollouts=4 * len(scores))
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_wilsons_interval_for_one_answer_a_question():
    found = accuracy_interval([1.0] * 45 + [0.0] * 55, rollouts=100)
    assert (round(found.low, 3), round(found.high, 3)) == (0.356, 0.548)


def test_all_right_does_not_close_the_interval():
    assert accuracy_interval([1.0] * 30, rollouts=30).low == pytest.approx(0.886, abs=0.001)
    assert accuracy_interval([0.0] * 30, rollouts=30).high == pytest.approx(0.114, abs=0.001)


def test_repeats_that_agree_add_no_evidence():
    scores = [1.0] * 30 + [0.0] * 20
    once = accuracy_interval(scores, rollouts=50)
    often = accuracy_interval(scores, rollouts=500)
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.02)


def test_repeats_that_differ_narrow_the_interval():
    often = accuracy_interval([0.5] * 50, rollouts=500)
    as_questions = accuracy_interval([1.0, 0.0] * 250, rollouts=500)
    assert often == as_questions


def test_nineteen_of_twenty_intervals_hold_the_truth():
    rng = np.random.default_rng(7)
    held_share = held_mean = 0
    for _ in range(200):
        difficulty = rng.beta(2, 1.5, size=60)
        scores = rng.binomial(3, difficulty) / 3
        share = accuracy_interval(scores.tolist(), rollouts=180)
        mean = mean_interval(scores.tolist(), resamples=400)
        held_share += share.low <= 2 / 3.5 <= share.high
        held_mean += mean.low <= 2 / 3.5 <= mean.high
    assert 180 <= held_share <= 198
    assert 178 <= held_mean <= 198


def test_paired_difference_cancels_shared_variation():
    rng = np.random.default_rng(3)
    shared = rng.normal(0, 10, size=200)
    found = paired_difference((shared + 0.5).tolist(), (shared + rng.normal(0, 0.1, 200)).tolist())
    assert found is not None
    assert 0.45 < found.low < 0.5 < found.high < 0.55


def test_one_question_has_no_interval():
    assert paired_difference([1.0], [0.0]) is None


def test_the_same_scores_give_the_same_interval():
    scores = [0.0, 1.0, 1.0, 0.0, 1.0]
    assert mean_interval(scores) == mean_interval(scores)


def test_questions_of_different_evaluations_cannot_be_paired():
    with pytest.raises(ValueError, match="shape"):
        paired_difference([1.0, 0.0], [1.0, 0.0, 0.0])


def test_for_one_answer_a_question_the_permutation_test_is_mcnemars():
    rng = np.random.default_rng(5)
    for _ in range(20):
        first, second = rng.integers(0, 2, size=(2, 80))
        gained, lost = int((first > second).sum()), int((first < second).sum())
        cases = {gained, lost}  # Both ends of the distribution, or its middle once.
        half = sum(binom.pmf(count, gained + lost, 0.5) for count in cases) / 2
        exact = binomtest(gained, gained + lost).pvalue
        expected = exact - half if gained != lost else 1.0
        assert permutation_test(first.tolist(), second.tolist()) == pytest.approx(expected, abs=1e-9)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.sampled_from([0, 1, 2, 3])), min_size=1, max_size=9)
)
def test_permutation_test_swaps_all_repeats_of_a_question_together(pairs):
    first, second = ([pair[side] / 3 for pair in pairs] for side in (0, 1))
    differences = [a - b for a, b in pairs]
    observed = abs(sum(differences))
    sums = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(pairs))
    ]
    expected = (sum(s > observed for s in sums) + sum(s == observed for s in sums) / 2) / len(sums)
    if observed == 0:
        expected = 1.0
    assert permutation_test(first, second) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_bonferroni_in_every_family_that_contains_the_row(p_values):
    rows = range(len(p_values))
    families = [family for size in rows for family in combinations(rows, size + 1)]
    adjusted = {f: min(1.0, min(p_values[row] for row in f) * len(f)) for f in families}
    for row, p in enumerate(adjusted_p_values(p_values)):
        assert p == pytest.approx(max(of for family, of in adjusted.items() if row in family))


def test_holm_leaves_out_rows_that_were_not_tested():
    assert adjusted_p_values([0.01, None, 0.04]) == (0.02, None, 0.04)
