"""One thread each: the models here are too small for more, and spinning threads starve tests that run beside.

The fixtures are small runs of the TRL engine on a tiny policy, over a scripted team and a table of sums.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # for the runs that tests start as programs

import pytest
import torch

from scripted_team import Sums, write_calculators, write_sums
from tiny_policy import BRIEF, FIRST, write_policy

torch.set_num_threads(1)

Run = Callable[..., Path]


PLANS = (
    FIRST,
    'model_id = [1]\nsubtasks = ["Answer the question."]\naccess_list = [[]]\n',
    'model_id = [0, 2]\nsubtasks = ["Answer the question.", "Check it."]\naccess_list = [[], ["all"]]\n',
    "I would ask the first worker.",
)
"""What the start writes: the last is no plan."""


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings `start`, `pool` and `tasks`: a checkpoint, the scripted team, and 20 sums of a split."""
    folder = tmp_path_factory.mktemp("ground")
    splits = ("train", "validation", "test")
    sums = [task for split in splits for task in Sums(split, size=20)]
    return {
        "start": str(write_policy(folder / "start", *PLANS, positions=1024)),
        "pool": str(write_calculators(folder / "pool.toml", sums)),
        "tasks": str(write_sums(folder / "sums.jsonl", 20, splits)),
    }


@pytest.fixture
def settings(ground: dict[str, str]) -> dict[str, Any]:
    """Two iterations of two questions with four rollouts each."""
    return _settings(ground)


@pytest.fixture
def train(tmp_path: Path) -> Run:
    """Trains in a folder and returns the policy's."""

    def run(settings: dict[str, Any], folder: str = "run", **wiring: Any) -> Path:
        return _train(settings, tmp_path / folder, **wiring)

    return run


@pytest.fixture(scope="session")
def plain_run(ground: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `settings`, which tests only read."""
    return _train(_settings(ground), tmp_path_factory.mktemp("trl") / "plain").parent


@pytest.fixture(scope="session")
def evaluated_run(ground: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, evaluated on 11 questions after each iteration."""
    settings = _settings(ground)
    settings["grpo"] |= {"eval_every": 1, "eval_questions": 11}
    return _train(settings, tmp_path_factory.mktemp("trl") / "evaluated").parent


def _settings(ground: dict[str, str]) -> dict[str, Any]:
    return {
        "engine": "trl",
        **ground,
        "task_limit": 20,
        "prompt": {"examples": 0, **BRIEF["prompt"]},
        "trl": {"gradient_checkpointing": False},
        "grpo": {
            "iterations": 2,
            "questions": 2,
            "group": 4,
            "max_tokens": 64,
            "lr": 2e-4,
            "temperature": 0.7,
            "micro_batch": 8,
            "save_every": 1,
        },
    }


def _train(settings: dict[str, Any], folder: Path, **wiring: Any) -> Path:
    """The policy of a run in that folder."""
    from podium.train.grpo_run import run_grpo  # noqa: PLC0415 - torch has its threads first
    from podium.train.settings import TrainSettings  # noqa: PLC0415

    return asyncio.run(run_grpo(TrainSettings.model_validate(settings), folder, **wiring))
