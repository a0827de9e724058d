"""Routing is found where it is, and neither a constant plan nor knowledge of hops alone passes for it."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.handmade_evaluations import evaluation
from podium_research.measures.routing import (
    ALIGNMENTS,
    measure_routing,
    mutual_information,
    rank_correlation,
    steps_by_hops,
)

SKILLS = ("sums", "words", "dates", "units")
LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=80)


def questions(count: int = 120) -> list[tuple[str, ...]]:
    random = Random("questions")
    return [tuple(random.choice(SKILLS) for _ in range(random.randint(1, 3))) for _ in range(count)]


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_a_worker_for_each_skill_is_found(alignment):
    routed = evaluation([(skills, [[SKILLS.index(s) for s in skills]]) for skills in questions()])
    found = measure_routing(routed, alignment=alignment)
    assert found.by_question
    assert found.nats == pytest.approx(math.log(4), rel=0.05)
    assert found.bits == pytest.approx(2, rel=0.05)
    assert found.excess > 0.8


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_routing_measure_finds_nothing_in_plans_that_depend_on_hop_count(alignment):
    plans = {1: [0], 2: [1, 2], 3: [3, 0, 1]}
    blind = evaluation([(skills, [plans[len(skills)]]) for skills in questions()])
    found = measure_routing(blind, alignment=alignment)
    assert not found.by_question
    assert found.nats == pytest.approx(found.null_mean)
    assert found.excess == pytest.approx(0)


def test_routing_measure_finds_nothing_in_random_workers():
    random = Random("blind")
    found = []
    for trial in range(20):
        plans = [[[random.randrange(4) for _ in skills]] * 4 for skills in questions(60)]
        found.append(
            measure_routing(
                evaluation(list(zip(questions(60), plans, strict=True))), permutations=100, seed=str(trial)
            )
        )
    assert all(one.nats > 0 for one in found), "plain mutual information flatters"
    assert sum(one.by_question for one in found) <= 4


def test_each_alignment_counts_its_own_pairs_of_step_and_skill():
    one = evaluation([(("sums", "dates"), [[0, 1, 2]]), (("sums",), [[3]]), (("sums", "units"), [[1]])])
    counts = {
        alignment: measure_routing(one, alignment=alignment, permutations=10).pairs
        for alignment in ALIGNMENTS
    }
    assert counts == {"in order": 2 + 1 + 1, "one step a hop": 1, "one hop": 1}


def test_questions_without_known_skills_have_no_pairs():
    found = measure_routing(evaluation([((), [[0]]), ((), [[1]])]))
    assert (found.pairs, found.nats, found.by_question) == (0, 0, False)


@given(LABELS)
def test_mutual_information_is_symmetric_bounded_and_none_for_a_constant(pairs):
    first, second = np.array(pairs).T
    found = mutual_information(first, second)
    assert found == pytest.approx(mutual_information(second, first))
    assert -1e-12 <= found <= math.log(4) + 1e-12
    assert mutual_information(first, np.zeros_like(second)) == pytest.approx(0, abs=1e-12)


@given(LABELS.filter(lambda pairs: len({x for x, _ in pairs}) > 1))
def test_rank_correlation_is_1_for_equal_and_minus_1_for_opposite_ranks(pairs):
    values = np.array([x for x, _ in pairs], dtype=float)
    assert rank_correlation(values, values**3) == pytest.approx(1)
    assert rank_correlation(values, -values) == pytest.approx(-1)


def test_ties_share_their_mean_rank():
    # Ranks 1.5 1.5 3 4 against 1 2 3.5 3.5.
    assert rank_correlation(np.array([1.0, 1, 2, 3]), np.array([1.0, 2, 3, 3])) == pytest.approx(8 / 9)


def test_more_steps_on_more_hops_correlate():
    plans = [(skills, [[0] * min(len(skills) + 1, 3)]) for skills in questions()]
    found = steps_by_hops(evaluation(plans), resamples=200)
    assert found is not None
    assert 0.7 < found.low < found.mean < found.high <= 1


def test_step_count_independent_of_hops_does_not_correlate():
    random = Random("steps")
    plans = [(skills, [[0] * random.randint(1, 5)]) for skills in questions()]
    found = steps_by_hops(evaluation(plans), resamples=200)
    assert found is not None
    assert found.low < 0 < found.high


def test_constant_step_count_has_no_correlation_with_hops():
    assert steps_by_hops(evaluation([(skills, [[0, 1]]) for skills in questions()])) is None


def test_both_measures_agree_with_scipy_and_scikit_learn():
    stats = pytest.importorskip("scipy.stats")
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(7)
    for _ in range(20):
        first, second = rng.integers(5, size=(2, 60))
        rho = rank_correlation(first.astype(float), second.astype(float))
        assert rho == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)
        nats = mutual_information(first, second)
        assert nats == pytest.approx(metrics.mutual_info_score(first, second), abs=1e-12)
