"""Every planner of Podium's own plans for any pool, whatever the workers reply, and ends in its rounds."""

from pathlib import Path

import pytest

from planner_runs import check_planner
from podium.baselines.masrouter_controller import Controller
from podium.baselines.registry import own_baselines
from podium.baselines.trinity_head import Head

FILES = {
    "constant": lambda names, seed: "model_id = [0]\nsubtasks = ['Answer.']\naccess_list = [[]]",
    "trinity": lambda names, seed: Head.untrained(names).model_dump_json(),
    "masrouter": lambda names, seed: Controller.untrained(names, seed=seed).model_dump_json(),
}
"""What the file of a planner that reads one has, by the workers' names and a seed."""


@pytest.mark.parametrize("baseline", own_baselines().values(), ids=lambda b: b.name)
def test_it_plans_for_any_pool_whatever_the_workers_reply(baseline, tmp_path: Path) -> None:
    def write_file(names: list[str], seed: int) -> Path:
        (tmp_path / "file").write_text(FILES[baseline.name](names, seed))
        return tmp_path / "file"

    check_planner(baseline, write_file if baseline.reads_files else None)
