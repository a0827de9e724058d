"""Every planner of this package opens by its name, and plans for any pool, whatever the workers reply."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from planner_page import check_page
from planner_runs import check_planner
from podium.baselines import Baseline

PLANNERS: list[Baseline] = [
    entry.load()
    for entry in entry_points(group="podium.planners")
    if entry.value.startswith("podium_research.")
]


@pytest.mark.parametrize("baseline", PLANNERS, ids=lambda b: b.name)
def test_it_plans_for_any_pool_whatever_the_workers_reply(baseline: Baseline) -> None:
    check_planner(baseline)


def test_the_page_lists_each_planner() -> None:
    check_page(Path(__file__).parents[2] / "docs" / "planners.md", PLANNERS)
