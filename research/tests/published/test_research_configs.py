"""Every configuration of a published run can be used: mappings of tables, pools of recorded workers, their suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.config import load
from podium.evals.suite.manifest import tables_of
from podium.evals.suite.suite_settings import SuiteSettings
from podium.planners import find_baseline
from podium.recordings.table_import import TableMapping
from podium.team.settings import TeamSettings
from podium.workers.pool import pool_file
from podium.workers.ratings import Ratings
from podium.workers.spec import ReplaySpec

CONFIGS = Path(__file__).parents[2] / "configs"
POOLS = sorted({*(CONFIGS / "pools").glob("*.toml")} - {CONFIGS / "pools" / "small-open-ways.toml"})
"""Those of recorded workers."""


@pytest.mark.parametrize("path", POOLS, ids=lambda path: path.stem)
def test_every_recorded_pool_uses_a_recording_that_a_mapping_creates(path: Path) -> None:
    spec = load(path, TeamSettings)
    mappings = [load(mapping, TableMapping).name for mapping in (CONFIGS / "recordings").glob("*.toml")]
    replayed = [worker for worker in spec.worker if isinstance(worker, ReplaySpec)]
    assert {worker.recording.stem for worker in replayed} <= {*mappings, "routeprofile"}  # made of a checkout
    tools = [worker.kind for worker in spec.worker if worker not in replayed]
    assert tools == ["vote"]
    assert len({worker.name for worker in spec.worker}) == len(spec.worker)


@pytest.mark.parametrize("path", sorted((CONFIGS / "ratings").glob("*.json")), ids=lambda path: path.stem)
def test_every_file_of_ratings_rates_the_workers_of_its_pool(path: Path) -> None:
    named = {worker.name for worker in load(CONFIGS / "pools" / f"{path.stem}.toml", TeamSettings).worker}
    assert set(Ratings.open(path).workers) <= {*named, "calculator"}


def test_the_suite_names_planners_and_pools_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFIGS.parent)
    suite = load(CONFIGS / "eval" / "recorded.toml", SuiteSettings)
    assert all(find_baseline(entry.planner) for entry in suite.planner if entry.planner != "conductor")
    assert all(pool_file(entry.name).is_file() for entry in suite.pool)
    assert len(list(tables_of(suite))) >= len(suite.tasks)
