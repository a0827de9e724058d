"""The search finds the constant plan that a small world is known to reward, within the cost that is allowed."""

import pytest

from podium.errors import ConfigError, UsageError
from podium.planners import Constant
from podium.planners.phrases import CHECK, PHRASES
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.types import ANSWER_WHOLE_QUESTION, Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import check, parse
from podium_research.search.constant import (
    ConstantPlan,
    ConstantPlanFront,
    rank_by_front,
    search_constant,
    undominated,
)
from scripted_team import SKILLS, Sums, calculator

RUNGS = ((60, 4), (12, 8))
TASKS = [
    Task(id=f"t/{k}", question=Question(text=f"Which? {k}"), gold="yes", grader=Exact()) for k in range(8)
]


def scripted(name: str, price: float, **replies: str) -> ScriptedWorker:
    """Says "yes" to the phrase of each keyword, and "no" to every other."""
    phrases = {"whole": ANSWER_WHOLE_QUESTION, "check": CHECK}
    said = {phrases[key]: f"Answer: {reply}" for key, reply in replies.items()}
    return ScriptedWorker(
        name, said | {"": "Answer: no"}, profile=Profile(name=name, price=Price(input=0, output=price))
    )


POOL = Pool([scripted("cheap", 1.0, check="yes"), scripted("dear", 50.0, whole="yes")])


async def test_the_cheapest_plan_that_is_right_is_on_the_frontier():
    found = await search_constant(POOL, TASKS, max_steps=2, rungs=RUNGS)
    best = found.within(1.0)
    assert best is not None
    assert best.workflow.steps[0].subtask == CHECK
    assert best.workers[best.workflow.steps[0].worker] == "cheap"
    assert max(plan.accuracy for plan in found.plans) == 1


async def test_constant_search_respects_its_cost_limit():
    free = await search_constant(POOL, TASKS, max_steps=1, rungs=RUNGS)
    costs = sorted(plan.cost_usd for plan in free.plans)
    tight = await search_constant(POOL, TASKS, max_steps=2, max_cost=costs[0], rungs=RUNGS)
    assert all(plan.cost_usd <= costs[0] for plan in tight.plans)
    assert (await search_constant(POOL, TASKS, max_cost=0.0, rungs=RUNGS)).plans == ()


async def test_constant_search_is_seeded_and_finds_valid_plans():
    specialists = Pool(
        [
            calculator("left", *SKILLS[:2], price=1.0, rest=0.1),
            calculator("right", *SKILLS[2:], price=1.0, rest=0.1),
            calculator("all", price=4.0, rest=0.7),
        ]
    )
    tuning = list(Sums("validation", 40))

    async def search(seed: str) -> ConstantPlanFront:
        return await search_constant(specialists, tuning, max_steps=3, rungs=((24, 4), (6, 10)), seed=seed)

    found = await search("0")
    assert found == await search("0")
    assert found != await search("1")
    for plan in found.plans:
        workflow = parse(plan.plan, workers=3, max_steps=3)
        assert check(workflow, workers=3, max_steps=3) is None
        assert {step.subtask for step in workflow.steps} <= set(PHRASES)
    assert list(found.plans) == sorted(found.plans, key=lambda plan: plan.cost_usd)
    assert list(found.plans) == sorted(found.plans, key=lambda plan: plan.accuracy)


async def test_the_last_choice_is_made_on_questions_that_the_search_left_over():
    # What the search sees is "no"; a plan that suits it is not the one that suits the rest.
    seen = [
        Task(id=f"s/{k}", question=Question(text=f"Seen? {k}"), gold="no", grader=Exact()) for k in range(8)
    ]
    rest = [
        Task(id=f"r/{k}", question=Question(text=f"Rest? {k}"), gold="yes", grader=Exact())
        for k in range(100)
    ]
    found = await search_constant(POOL, [*seen, *rest], max_steps=1, rungs=RUNGS)
    assert found.questions == 100
    assert max(plan.accuracy for plan in found.plans) == 1


async def test_no_tasks_are_refused():
    with pytest.raises(UsageError, match="no tasks to search constant plans on"):
        await search_constant(POOL, [])


def plan(accuracy: float, cost: float, text: str = "") -> ConstantPlan:
    return ConstantPlan(plan=text or f"{accuracy} {cost}", accuracy=accuracy, cost_usd=cost)


def test_frontier_keeps_only_undominated_plans():
    plans = [plan(0.5, 1), plan(0.4, 2), plan(0.6, 2), plan(0.6, 3), plan(0.5, 1, "twin"), plan(0.9, 9)]
    assert undominated(plans) == (plan(0.5, 1), plan(0.6, 2), plan(0.9, 9))


def test_plans_are_ranked_by_successive_frontiers():
    plans = [plan(0.4, 2), plan(0.5, 1), plan(0.6, 2), plan(0.45, 3)]
    assert rank_by_front([(p.accuracy, p) for p in plans]) == [0.6, 0.5, 0.45, 0.4]


TEXT = 'model_id = [1]\nsubtasks = ["Do it."]\naccess_list = [[]]'
FRONTIER = ConstantPlanFront(
    workers=("a", "b"),
    plans=(plan(0.5, 1, TEXT), plan(0.6, 2, TEXT.replace("[1]", "[0]"))),
    max_steps=5,
    questions=8,
    seed="0",
)


def test_within_returns_the_most_accurate_affordable_plan():
    assert FRONTIER.within(0.5) is None
    assert [FRONTIER.within(cost).workflow.steps[0].worker for cost in (1, 1.9, 2, 99)] == [1, 1, 0, 0]
    assert isinstance(FRONTIER.within(1), Constant)


def test_a_frontier_survives_its_file(tmp_path):
    FRONTIER.save(tmp_path / "new" / "constant.json")
    assert ConstantPlanFront.load(tmp_path / "new" / "constant.json") == FRONTIER


def test_frontier_file_of_another_format_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        ConstantPlanFront.load(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ConfigError, match="does not hold constant plans"):
        ConstantPlanFront.load(tmp_path / "other.json")
