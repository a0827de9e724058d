"""Random plans for the supervised stage: the form is right, the choice is random."""

from __future__ import annotations

from collections import Counter
from math import log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.rollout.collapse import entropy
from podium.train.random_plans import PROGRAM_WORDINGS, WORDINGS, random_plan, random_thought
from podium.types import Profile
from podium.workflow import AccessRule, PlanRules, check, needed_steps, parse, render, topology

POOL = (
    Profile(name="small"),
    Profile(name="large"),
    Profile(name="code", requires_earlier_responses=True, runs_programs=True),
    Profile(name="vote", requires_earlier_responses=True),
)
PROGRAMS = {subtask for subtasks in PROGRAM_WORDINGS.values() for subtask in subtasks}
NAMES = [profile.name for profile in POOL]
ACCESS: list[AccessRule] = ["lists", "all_or_none"]


@pytest.mark.parametrize("access", ACCESS)
@given(random=st.randoms(use_true_random=False), max_steps=st.integers(1, 6))
def test_every_plan_is_valid_and_runs_whole(random: Random, max_steps: int, access: AccessRule) -> None:
    plan = random_plan(random, POOL, max_steps=max_steps, access=access)
    assert check(plan, PlanRules(workers=len(POOL), max_steps=max_steps, access=access)) is None
    assert len(needed_steps(plan)) == len(plan.steps)
    for position, step in enumerate(plan.steps):
        read, profile = [plan.steps[earlier] for earlier in plan.reads(position)], POOL[step.worker]
        assert read or not profile.requires_earlier_responses
        told = [earlier.subtask for earlier in read if not POOL[earlier.worker].requires_earlier_responses]
        assert not (profile.runs_programs and told) or PROGRAMS.intersection(told)
    thought = random_thought(random, [NAMES[step.worker] for step in plan.steps])
    written = render(plan, "structured", names=NAMES, thought=thought)
    assert parse(written, PlanRules(workers=len(POOL), max_steps=max_steps, names=NAMES)) == plan


@pytest.mark.parametrize("access", ACCESS)
def test_random_training_plans_cover_all_choices_of_a_policy(access: AccessRule) -> None:
    random = Random("choices")
    plans = [random_plan(random, POOL, max_steps=4, access=access) for _ in range(2000)]
    steps = Counter(len(plan.steps) for plan in plans)
    assert min(steps.values()) > 0.2 * len(plans)
    shapes = {topology(plan) for plan in plans}
    assert shapes >= {"single", "chain", "parallel+join", "tree"}
    assert access == "all_or_none" or "other" in shapes
    longer = [plan for plan in plans if len(plan.steps) > 1]
    assert entropy(plan.steps[-1].worker for plan in longer) > 0.99 * log(len(POOL))
    assert len({step.subtask for plan in plans for step in plan.steps}) > 300


def test_no_wording_names_a_kind_of_question() -> None:
    words = " ".join(text for kinds in WORDINGS.values() for kind in kinds for text in kind).lower()
    assert not [
        word for word in ("math", "number", "code review", "sort", "letter", "fraction") if word in words
    ]


def test_a_team_of_tools_alone_still_gets_plans() -> None:
    plan = random_plan(Random(0), POOL[2:], max_steps=3)
    assert check(plan, PlanRules(workers=2, max_steps=3)) is None
