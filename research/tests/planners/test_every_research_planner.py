"""Every planner of this package opens by its name, and plans for any pool, whatever the workers reply."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from planner_page import check_page
from planner_runs import check_planner
from podium.planners import PlannerSpec
from podium_research.planners.learned_routers import METHODS
from podium_research.planners.masrouter_controller import Controller
from podium_research.planners.trinity_head import Head

PLANNERS: list[PlannerSpec] = [
    entry.load()
    for entry in entry_points(group="podium.planners")
    if entry.value.startswith("podium_research.")
]


FILES = {
    "trinity": lambda names, seed: Head.untrained(names).model_dump_json(),
    "masrouter": lambda names, seed: Controller.untrained(names, seed=seed).model_dump_json(),
}
"""What the file of a planner that reads one has, by the workers' names and a seed."""
FURTHER = {
    "debate": lambda names: [f"debate:3x{names[0]}"],
    "dylan": lambda names: [f"dylan:4x{names[0]}"],
    "masrouter-scored": lambda names: ["masrouter-scored:0"],
    "router": lambda names: [f"router:{method}:10" for method in METHODS],
    "committee-router": lambda names: [f"committee-router:{method}:10" for method in METHODS],
}


@pytest.mark.parametrize("baseline", PLANNERS, ids=lambda b: b.name)
def test_it_plans_for_any_pool_whatever_the_workers_reply(baseline: PlannerSpec, tmp_path: Path) -> None:
    def write_file(names: list[str], seed: int) -> Path:
        (tmp_path / "file").write_text(FILES[baseline.name](names, seed))
        return tmp_path / "file"

    further_names = FURTHER.get(baseline.name, lambda names: [])
    check_planner(baseline, write_file if baseline.reads_files else None, further_names)


def test_the_page_lists_each_planner() -> None:
    check_page(Path(__file__).parents[2] / "docs" / "planners.md", PLANNERS)
