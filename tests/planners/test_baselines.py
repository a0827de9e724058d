"""Baselines write valid workflows for any pool, in any order, and accept what they have when asked again."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ConfigError
from podium.planners import (
    Committee,
    Constant,
    RandomPlans,
    SelfConsistency,
    Single,
    open_baseline,
    random_workflow,
    read_constant,
)
from podium.planners.baseline import voting_step
from podium.planners.controls import PHRASES
from podium.planners.planner import EarlierRound, PlanRequest
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION, Profile, Question
from podium.workflow import Acceptance, Access, PlanRules, Step, Workflow, check, parse, render


def request(*names: str, **others) -> PlanRequest:
    return PlanRequest(
        Question(text="What is 6 times 7?"), tuple(Profile(name=name) for name in names), **others
    )


CHAIN = Workflow(
    (Step(0, ANSWER_WHOLE_QUESTION), Step(1, "Check the work shown and mend it.", Access(all=True)))
)
PLANNERS = [
    Single("b"),
    SelfConsistency("b", 3),
    Constant(CHAIN, ("a", "b")),
    RandomPlans(),
    Committee(("a", "b")),
    Committee(("a", "b"), (1.0, 2.0)),
]


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
async def test_text_of_a_baseline_plan_parses_to_its_decision(planner):
    plan: Plan = await planner.plan(request("a", "b", "vote"))
    assert isinstance(plan.decision, Workflow)
    assert parse(plan.text, PlanRules(workers=3, max_steps=9)) == plan.decision


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
async def test_it_accepts_in_a_later_round(planner):
    again = request("a", "b", "vote", earlier_rounds=(EarlierRound(CHAIN, "42"),))
    plan = await planner.plan(again)
    assert plan.decision == Acceptance()
    assert parse(plan.text, PlanRules(workers=3, later_round=True)) == Acceptance()


async def test_single_baseline_gives_its_worker_the_whole_question():
    for names in (("a", "b"), ("b", "a")):
        plan = await Single("b").plan(request(*names))
        assert plan.decision == Workflow((Step(names.index("b"), "Answer the whole question."),))


async def test_self_consistency_samples_side_by_side_and_votes_on_all():
    plan = await SelfConsistency("a", 3).plan(request("vote", "a"))
    assert isinstance(plan.decision, Workflow)
    *samples, vote = plan.decision.steps
    assert samples == [Step(1, ANSWER_WHOLE_QUESTION)] * 3
    assert (vote.worker, plan.decision.reads(3)) == (0, (0, 1, 2))


async def test_one_sample_needs_no_vote():
    plan = await SelfConsistency("a", 1).plan(request("a"))
    assert plan.decision == Workflow((Step(0, ANSWER_WHOLE_QUESTION),))


async def test_self_consistency_without_a_vote_says_what_to_add():
    with pytest.raises(ConfigError, match='add a \\[\\[worker\\]\\] with name = "vote" and kind = "vote"'):
        await SelfConsistency("a", 3).plan(request("a", "b"))


async def test_a_constant_plan_follows_its_workers_through_a_permuted_pool():
    plan = await Constant(CHAIN, ("a", "b")).plan(request("b", "c", "a"))
    assert isinstance(plan.decision, Workflow)
    assert [step.worker for step in plan.decision.steps] == [2, 0]


def test_a_constant_plan_may_have_more_steps_than_a_conductor_writes(tmp_path):
    long = Workflow(tuple(Step(0, f"Do {n}.", Access()) for n in range(8)))
    file = tmp_path / "plan.txt"
    file.write_text(render(long))
    assert open_baseline(f"constant:{file}", [Profile(name="a"), Profile(name="b")]).workflow == long
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read"):
        open_baseline(f"constant:{file}", [Profile(name="a"), Profile(name="b")])


@pytest.mark.parametrize(
    ("text", "says"),
    [("nonsense", "The plan of c cannot be read: "), (render(CHAIN).replace("1]", "7]"), "cannot be read")],
)
def test_constant_plan_file_without_a_valid_plan_is_refused(text, says):
    with pytest.raises(ConfigError, match=says):
        read_constant(text, ["a", "b"], name="c")


@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 6))
def test_random_workflows_are_valid_whatever_the_pool(random, workers, max_steps):
    for access in ("lists", "all_or_none"):
        workflow = random_workflow(random, workers=workers, max_steps=max_steps, access=access)
        assert check(workflow, PlanRules(workers=workers, max_steps=max_steps, access=access)) is None


def test_random_workflows_use_all_numbers_of_steps_workers_and_access():
    random = Random("coverage")
    drawn = [random_workflow(random, workers=6, max_steps=5) for _ in range(500)]
    steps = [step for workflow in drawn for step in workflow.steps]
    assert {len(workflow.steps) for workflow in drawn} == {1, 2, 3, 4, 5}
    assert {step.worker for step in steps} == set(range(6))
    assert {step.subtask for step in steps} == set(PHRASES)
    assert {(step.access.all, bool(step.access.steps)) for step in steps} == {
        (True, False),
        (False, True),
        (False, False),
    }


async def test_random_plans_repeat_with_their_seed_and_differ_with_another():
    async def plans(seed: str) -> list[str]:
        asked = (request("a", "b", "c", seed=str(k)) for k in range(8))
        return [(await RandomPlans(seed).plan(one)).text for one in asked]

    assert await plans("1") == await plans("1")
    assert await plans("1") != await plans("2")


def test_the_phrase_book_is_what_policies_were_taught():
    assert PHRASES == (
        "Answer the whole question.",
        "Do part 1 only.",
        "Do part 2 only.",
        "Do part 3 only.",
        "Do part 4 only.",
        "Do the next part.",
        "Finish the rest.",
        "Check the work shown and mend it.",
        "Compare the answers shown and give the best one.",
    )


def test_a_vote_is_on_all_steps_and_on_the_answer_of_the_round_before() -> None:
    vote = voting_step(request("ada", "vote").pool)
    assert vote == Step(1, "Give the most frequent answer.", Access(all=True))
    assert vote.access.sees_previous
    plan = Workflow((*[Step(0, ANSWER_WHOLE_QUESTION)] * 4, vote))
    assert plan.reads(4) == (0, 1, 2, 3)
    assert parse(render(plan), PlanRules(workers=2, max_steps=5)) == plan
