"""One thread each: the models here are too small for more, and spinning threads starve tests that run beside.

The fixtures are small runs of the TRL engine on the shipped warm start, which writes plans that can be read.
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

from podium.conductor.checkpoint import Checkpoint

torch.set_num_threads(1)

Run = Callable[..., Path]


@pytest.fixture(scope="session")
def brief() -> dict[str, Any]:
    """How the warm start is asked."""
    return Checkpoint.read("warmstart").prompt.model_dump()


@pytest.fixture
def settings(brief: dict[str, Any]) -> dict[str, Any]:
    """Two iterations of two questions with four rollouts each."""
    return _settings(brief)


@pytest.fixture
def train(tmp_path: Path) -> Run:
    """Trains in a folder and returns the policy's."""

    def run(settings: dict[str, Any], folder: str = "run", **wiring: Any) -> Path:
        return _train(settings, tmp_path / folder, **wiring)

    return run


@pytest.fixture(scope="session")
def plain_run(brief: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `settings`, which tests only read."""
    return _train(_settings(brief), tmp_path_factory.mktemp("trl") / "plain").parent


@pytest.fixture(scope="session")
def evaluated_run(brief: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, evaluated on 11 questions after each iteration."""
    settings = _settings(brief)
    settings["grpo"] |= {"eval_every": 1, "eval_questions": 11}
    return _train(settings, tmp_path_factory.mktemp("trl") / "evaluated").parent


def _settings(brief: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": "trl",
        "start": "warmstart",
        "task_limit": 20,
        "prompt": brief,
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
    from podium.train.run import run_grpo  # noqa: PLC0415 - torch has its threads first
    from podium.train.settings import TrainSettings  # noqa: PLC0415

    return asyncio.run(run_grpo(TrainSettings.model_validate(settings), folder, **wiring))
