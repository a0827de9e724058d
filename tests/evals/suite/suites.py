"""Suites for tests: opened, run, and read as figures without times and ids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from podium.config import build
from podium.evals.answer_files import RESULTS
from podium.evals.suite.manifest import SuiteManifest
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_run import run_suite
from podium.evals.suite.suite_settings import SuiteSettings
from podium.tasks.task import Split
from scripted_team import Sums, write_calculators, write_sums
from tiny_policy import write_policy

ALONE = tuple(
    f'model_id = [{worker}]\nsubtasks = ["Answer the question."]\naccess_list = [[]]\n' for worker in range(5)
)
"""Plans that give the question to one worker."""
_CHANGING = frozenset({"id", "seconds", "started_at", "started_s", "ended_s"})
"""Keys of a trace that differ each time."""


@cache
def _folder() -> TemporaryDirectory[str]:
    """It is removed when the process of tests ends."""
    return TemporaryDirectory()


@cache
def data() -> tuple[str, str]:
    """The table of 240 questions of each split, and the team file of a team that answers them."""
    folder = Path(_folder().name)
    splits: tuple[Split, ...] = ("train", "validation", "test")
    tasks = [task for split in splits for task in Sums(split, size=240)]
    team = write_calculators(folder / "calculators.toml", tasks)
    return str(write_sums(folder / "sums.jsonl", 240, splits)), str(team)


@cache
def policy() -> str:
    """The folder of a policy that writes any of `ALONE`; greedily the first."""
    return str(write_policy(Path(_folder().name) / "policy", *ALONE))


def check(folder: Path = Path("r"), **settings: Any) -> SuiteManifest:
    """In one process unless `settings` say otherwise: each loads Podium."""
    tasks, pool = data()
    settings = {"processes": 1, **settings}
    settings["tasks"] = [{"name": tasks, **entry} for entry in settings.get("tasks", [{}])]
    settings["pool"] = [{"name": pool, **entry} for entry in settings.get("pool", [{}])]
    return asyncio.run(check_suite(build(settings, SuiteSettings), folder))


def run(folder: Path, **settings: Any) -> Mapping[str, list[Any]]:
    """Run a suite; returns the sorted answers of each cell."""
    asyncio.run(run_suite(check(folder, **settings), folder))
    return answers(folder)


def answers(folder: Path) -> Mapping[str, list[Any]]:
    """By cell, its answers, sorted and without what differs each time."""
    return {
        file.stem: sorted(
            (_still(json.loads(line)) for line in file.read_text().split("\n")[:-1]),
            key=lambda answer: (answer["task"], answer["sample"]),
        )
        for file in (folder / RESULTS).iterdir()
    }


def _still(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _still(item) for key, item in value.items() if key not in _CHANGING}
    return [_still(item) for item in value] if isinstance(value, list) else value
