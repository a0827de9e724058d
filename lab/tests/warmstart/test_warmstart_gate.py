"""The gate of the warm start over few questions, and over teams that claim nothing."""

from __future__ import annotations

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.train.shared_prefix.checkpoints import read_model
from podium.types import Profile
from podium_lab.exercises.cases import PROMPT, known_team
from podium_lab.exercises.teams import ExampleTeam
from podium_lab.warmstart.acceptance import (
    AcceptanceCheck,
    AcceptanceReport,
    measure,
    valid_by_steps,
)
from podium_lab.warmstart.supervised import WarmStartSettings, make_model, make_tokenizer

TINY = WarmStartSettings(
    vocabulary=700, vocabulary_examples=300, hidden=32, layers=1, heads=2, kv_heads=1, inner=64
)


def plan(steps: int, *, valid: bool = True) -> tuple[str, int]:
    """A plan of so many steps, and the size of its pool."""
    ids, texts = [0 if valid else 9] * steps, ["Solve it."] * steps
    return f"model_id = {ids}\nsubtasks = {texts}\naccess_list = {[[] for _ in ids]}", 3


@pytest.mark.parametrize(
    ("plans", "shares", "passed"),
    [
        ([*[plan(1)] * 10, *[plan(2)] * 9], {"1": 1.0}, True),
        ([*[plan(1)] * 10, *[plan(2, valid=False)] * 10], {"1": 1.0, "2": 0.0}, False),
        ([plan(2)] * 3, {"2": 1.0}, True),
        ([*[plan(1)] * 3, *[plan(2)] * 9], {"all": 1.0}, True),
        ([*[plan(1)] * 3, plan(2, valid=False)], {"all": 0.75}, False),
        ([], {}, False),
    ],
)
def test_gate_skips_plan_lengths_with_few_plans_unless_all_have_few(
    plans: list[tuple[str, int]], shares: dict[str, float], passed: bool
) -> None:
    found = valid_by_steps(plans, max_steps=5)
    assert found == shares
    assert AcceptanceReport(1.0, 1.0, 1.0, 1.0, found).passed is passed


@pytest.mark.parametrize(
    ("steps", "passed"),
    [((), True), ((2.5, 2.1, 1.7, 1.5), True), ((2.5, 2.1, 2.1, 2.0), False), ((1.9, 1.9, 1.9, 1.9), False)],
)
def test_a_policy_that_does_not_save_more_at_each_level_is_not_accepted(
    steps: tuple[float, ...], passed: bool
) -> None:
    assert AcceptanceReport(1.0, 1.0, 1.0, 1.0, {"1": 1.0}, steps).passed is passed


def test_steps_are_counted_at_every_level_of_the_prompt() -> None:
    policy = Checkpoint.read("world-warmstart")
    teams = {"made-up teams": None}
    (report,) = measure(read_model(policy), policy.tokenizer(), teams, cases=20, saves=True).values()
    steps = report.steps_by_level
    assert len(steps) == PROMPT.levels
    # No lesson of this policy depends on the level.
    assert max(steps) - min(steps) < 0.5
    assert 1.0 < min(steps) <= max(steps) < 5.0


def test_a_team_without_claimed_skills_has_no_skill_to_get_wrong() -> None:
    tokenizer = make_tokenizer(TINY, known_team("orchestra"))
    exam = AcceptanceCheck(make_model(TINY, tokenizer.get_vocab_size()), tokenizer, seed=0)
    names, skills = exam.numbers(20, ExampleTeam((Profile(name="ada"), Profile(name="bob")), ({}, {})))
    assert 0.0 <= names <= 1.0
    assert skills == 1.0
