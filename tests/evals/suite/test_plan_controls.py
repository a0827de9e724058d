"""Controls change what they name and nothing else, and their plans stay valid."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.evals.suite.plan_controls import (
    PLAN_CONTROLS,
    ControlContext,
    most_frequent,
    with_control,
)
from podium.evals.suite.suite_settings import PlannerEntry
from podium.planners import Constant, random_workflow
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION, Profile, Question
from podium.workflow import Access, PlanRules, Step, Workflow, parse, render

POOL = (
    Profile(name="ada", description="Sums."),
    Profile(name="bob", description="Words."),
    Profile(name="cy", description="Dates."),
    Profile(name="vote"),
)
WORKFLOW = Workflow(
    (
        Step(0, "Add the numbers."),
        Step(1, "Spell the sum.", Access(steps=(0,))),
        Step(2, "Check.", Access(steps=(0, 1))),
        Step(3, "Give the most frequent answer.", Access(all=True)),
    )
)
CONTEXT = ControlContext(
    POOL,
    tools=frozenset({"vote"}),
    best_worker="bob",
    plans=(WORKFLOW,),
    samples=3,
    replacement=Constant(WORKFLOW, tuple(profile.name for profile in POOL)),
)


def plan_of(name: str, workflow: Workflow = WORKFLOW, question: str = "How many?") -> Workflow:
    """The control's plan where the planner's is `workflow`."""
    planner = Constant(workflow, tuple(profile.name for profile in POOL))
    return decided(with_control(name, planner, CONTEXT), question)


def decided(planner: Planner, question: str = "How many?") -> Workflow:
    plan = asyncio.run(planner.plan(PlanRequest(Question(text=question), POOL)))
    assert isinstance(plan.decision, Workflow)
    assert plan.text == render(plan.decision)
    return plan.decision


CHANGES = {
    "workers-permuted": {"worker"},
    "best-worker": {"worker"},
    "whole-question": {"subtask"},
    "no-access": {"access"},
    "all-access": {"access"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_control_changes_one_thing_and_leaves_the_vote_alone(name: str) -> None:
    changed = plan_of(name)
    differing = {
        field
        for before, after in zip(WORKFLOW.steps, changed.steps, strict=True)
        for field in ("worker", "subtask", "access")
        if getattr(before, field) != getattr(after, field)
    }
    assert differing == CHANGES[name]
    assert changed.steps[3] == WORKFLOW.steps[3]


def test_each_control_does_what_its_name_says() -> None:
    permuted = [step.worker for step in plan_of("workers-permuted").steps[:3]]
    assert sorted(permuted) == [0, 1, 2]
    assert all(worker != position for position, worker in enumerate(permuted))
    assert len({render(plan_of("workers-permuted", question=str(n))) for n in range(20)}) == 2, (
        "a question draws one of the two permutations of three workers that leave none in its place"
    )
    assert {step.worker for step in plan_of("best-worker").steps[:3]} == {1}
    assert {step.subtask for step in plan_of("whole-question").steps[:3]} == {ANSWER_WHOLE_QUESTION}
    assert {step.access for step in plan_of("no-access").steps[:3]} == {Access()}
    shuffled = [plan_of("steps-shuffled", question=str(n)) for n in range(20)]
    assert all(
        sorted(s.subtask for s in plan.steps) == sorted(s.subtask for s in WORKFLOW.steps)
        for plan in shuffled
    )
    assert len({tuple(step.subtask for step in plan.steps) for plan in shuffled}) > 3
    votes = plan_of("self-consistency")
    assert [step.worker for step in votes.steps] == [1, 1, 1, 3]


@given(seed=st.integers(0, 10_000), name=st.sampled_from(sorted(PLAN_CONTROLS)))
def test_every_control_of_a_valid_plan_is_a_valid_plan(seed: int, name: str) -> None:
    workflow = random_workflow(Random(f"controls/{seed}"), workers=len(POOL), max_steps=5)
    changed = plan_of(name, workflow, question=str(seed))
    assert parse(render(changed), PlanRules(workers=len(POOL), max_steps=9)) == changed


def test_the_most_frequent_plan_counts_workers_and_access_before_subtasks() -> None:
    one = [Workflow((Step(0, f"Do {n}."),)) for n in range(3)]
    two = [Workflow((Step(1, "Do it."),))] * 2
    assert most_frequent([*two, *one, one[1]]) == one[1]


def test_wrong_ratings_control_swaps_worker_descriptions() -> None:
    seen: list[PlanRequest] = []

    class Listening(Planner):
        name = "listening"

        async def plan(self, request: PlanRequest) -> Plan:
            seen.append(request)
            return Plan(render(WORKFLOW), WORKFLOW)

    assert decided(with_control("wrong-ratings", Listening(), CONTEXT)) == WORKFLOW
    told = seen[0].pool
    assert [profile.name for profile in told] == [profile.name for profile in POOL]
    assert sorted(p.description for p in told) == sorted(p.description for p in POOL)
    assert all(a.description != b.description for a, b in zip(told[:3], POOL[:3], strict=True))
    assert told[3] == POOL[3]


def test_a_misspelt_control_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"There is no control 'no-acess'; did you mean 'no-access'\?"):
        PlannerEntry(controls=("no-acess",))
