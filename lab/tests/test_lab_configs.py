"""Every configuration, suite and pool of the lab can be used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podium.config import Settings, load
from podium.evals.suite.manifest import tables_of
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_settings import SuiteSettings
from podium.planners import find_baseline
from podium.team.team_file import open_pool
from podium.train.settings import TrainSettings
from podium.workers.pool import pool_file
from podium_lab.exercises.abilities import ABILITIES
from podium_lab.small_workers.training import OrchestraSettings
from podium_lab.warmstart.supervised import WarmStartSettings

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "lab" / "configs").glob("*.toml"))
SUITES = sorted((ROOT / "lab" / "configs" / "eval").glob("*.toml"))
NINE = ROOT / "lab" / "configs" / "pools" / "orchestra-nine.toml"
FORMS: dict[str, type[Settings]] = {"warmstart": WarmStartSettings, "orchestra": OrchestraSettings}
"""Of configurations whose names begin so; the others are for GRPO."""
RESEARCH = frozenset(
    {
        "dylan",
        "generator-verifier-refiner",
        "masrouter-scored",
        "rectify-or-reject",
        "router",
        "committee-router",
        "selforg-agreement",
    }
)
"""Planners of suites that come with podium-research, and may not be installed."""


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_of_the_lab_loads(path: Path) -> None:
    form: type[Settings] = next(
        (form for start, form in FORMS.items() if path.stem.startswith(start)), TrainSettings
    )
    load(path, form)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_lab_suite_names_existing_planners_and_pools(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    suite = load(path, SuiteSettings)
    planners = [entry.planner for entry in suite.planner if entry.planner != "conductor"]
    assert all(find_baseline(name) for name in planners if name.partition(":")[0] not in RESEARCH)
    assert all(pool_file(entry.name).is_file() for entry in suite.pool)
    assert len(list(tables_of(suite))) >= len(suite.tasks)


def test_the_orchestra_has_the_workers_that_its_stage_trains() -> None:
    said = {ability.name: ability.profile for ability in ABILITIES}
    whole, nine = open_pool("orchestra"), open_pool(str(NINE))
    assert {p.name: p.description for p in whole.profiles if p.name != "vote"} == said
    assert set(whole.names) - set(nine.names) == {"cora", "dario"}
    assert all(whole.named(profile.name).profile == profile for profile in nine.profiles)


def test_a_suite_of_the_shipped_conductor_has_its_jobs() -> None:
    suite = SuiteSettings.model_validate(
        {
            "title": "The Conductor",
            "questions": 2,
            "seeds": 2,
            "planner": [{"planner": "conductor", "conductor": {"checkpoint": "world-conductor"}}],
            "tasks": [{"name": "world"}],
            "pool": [{"name": "orchestra"}],
        }
    )
    assert len(asyncio.run(check_suite(suite, Path("run"))).jobs) == 2
