"""Collapse: figures of plans with known counts, and the sentences that name what a training ruined."""

from __future__ import annotations

from math import log

import pytest

from podium.rollout.collapse import (
    PlanFacts,
    PlanStructure,
    collapse_figures,
    collapse_warnings,
    entropy,
    first_and_last_means,
    question_kind,
)

START = {
    "steps": 2.5,
    "first_worker_entropy": 1.2,
    "plan_information": 0.3,
    "accuracy": 0.2,
    "accuracy_readable": 0.4,
}


def plan(kind: str, *workers: str, correct: bool = False, topology: str = "-") -> PlanFacts:
    structure = PlanStructure(workers=workers, topology=topology, steps=len(workers))
    return PlanFacts(kind, bool(workers), correct, structure)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("gsm8k/cf7fc90a", "gsm8k"),
        ("reasoning-gym/gcd/0/21", "reasoning-gym/gcd"),
        ("world/3/7", "world"),
        ("own", "own"),
    ],
)
def test_a_question_has_the_kind_that_its_id_begins_with(task: str, kind: str) -> None:
    assert question_kind(task) == kind


def test_collapse_figures_of_a_few_plans_match_a_hand_count() -> None:
    plans = [plan("a", "x", correct=True), plan("a", "x"), plan("b", "y", "z", topology="-;0"), plan("b")]
    figures = collapse_figures(plans)
    assert figures["valid"] == 0.75
    assert figures["accuracy"] == 0.25
    assert figures["accuracy_readable"] == pytest.approx(1 / 3)
    assert figures["steps"] == pytest.approx(4 / 3)
    assert figures["steps_std"] == pytest.approx((2 / 9) ** 0.5)
    assert figures["first_worker_entropy"] == pytest.approx(log(3) - 2 / 3 * log(2))
    assert figures["commonest_plan"] == pytest.approx(2 / 3)
    assert set(collapse_figures([]).values()) == {0.0}


def test_equal_shares_have_the_logarithm_of_their_number() -> None:
    assert entropy("abab") == pytest.approx(log(2))
    assert entropy("aaaa") == entropy("") == 0.0


def test_plan_information_measures_kinds_and_corrects_for_chance() -> None:
    by_kind = [plan(kind, kind) for kind in "ab" for _ in range(100)]
    assert collapse_figures(by_kind)["plan_information"] == pytest.approx(log(2), abs=0.02)
    whatever = [plan(kind, worker) for kind in "ab" for worker in "xy" for _ in range(50)]
    assert collapse_figures(whatever)["plan_information"] == pytest.approx(0, abs=0.01)
    all_differ = [plan("ab"[number % 2], str(number)) for number in range(40)]
    assert collapse_figures(all_differ)["plan_information"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        ({}, None),
        ({"steps": 1.0}, "one step"),
        ({"first_worker_entropy": 0.05}, "the same worker"),
        ({"plan_information": 0.01}, "no longer depends"),
        ({"accuracy": 0.4, "accuracy_readable": 0.41}, "the form of a plan"),
        ({"accuracy": 0.4, "accuracy_readable": 0.6}, None),
        ({"commonest_plan": 0.97}, "97% of the readable plans"),
        ({"unreadable": 0.6}, "60% of the plans cannot be read"),
    ],
    ids=["as it was", "steps", "worker", "kind", "form alone", "both learned", "one plan", "unreadable"],
)
def test_each_collapse_is_named(change: dict[str, float], sign: str | None) -> None:
    found = collapse_warnings(START | change, START)
    assert len(found) == (sign is not None)
    assert all(sign is not None and sign in sentence for sentence in found)


def test_first_and_last_means_use_a_quarter_of_the_rows() -> None:
    rows = [{"steps": float(number), "workers": {"x": 1.0}} for number in range(12)]
    assert first_and_last_means(rows) == ({"steps": 1.0}, {"steps": 10.0})
    assert first_and_last_means(rows[:1]) == ({"steps": 0.0}, {"steps": 0.0})
