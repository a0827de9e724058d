"""Every planner of Podium's own plans for any pool, whatever the workers reply, and ends in its rounds."""

from pathlib import Path

import pytest

from planner_runs import check_planner
from podium.planners.registry import own_baselines

PLAN = "model_id = [0]\nsubtasks = ['Answer.']\naccess_list = [[]]"

FURTHER = {
    "weighted-vote": lambda names: ["weighted-vote"],
    "mixture-of-agents": lambda names: [f"mixture-of-agents:{'+'.join(names)}>2x{names[-1]}>{names[0]}"],
}


@pytest.mark.parametrize("baseline", own_baselines().values(), ids=lambda b: b.name)
def test_it_plans_for_any_pool_whatever_the_workers_reply(baseline, tmp_path: Path) -> None:
    def write_file(names: list[str], seed: int) -> Path:
        (tmp_path / "file").write_text(PLAN)
        return tmp_path / "file"

    further_names = FURTHER.get(baseline.name, lambda names: [])
    check_planner(baseline, write_file if baseline.reads_files else None, further_names)
