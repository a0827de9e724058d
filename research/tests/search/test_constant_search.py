"""The plans that no other plan beats, and their file."""

import pytest

from podium.errors import ConfigError
from podium.planners import Constant
from podium_research.search.constant import (
    ConstantPlan,
    ConstantPlanFront,
    rank_by_front,
    undominated,
)


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
