"""The run's folder of a training: who may train in it, and what stays of a run that has learned nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.errors import ConfigError, RunMismatchError, UsageError
from podium.files.atomic import lock_folder
from podium.rollout.run_folder import RunFolder
from podium.train.preflight import locked_training_folder
from podium.train.settings import TrainSettings
from podium.train.sft_run import run_sft

Settings = dict[str, Any]
SHARED_PREFIX = {"engine": "shared_prefix", "trl": {}}


@pytest.fixture
def sft(settings: Settings) -> Settings:
    """A supervised run of one step."""
    return settings | SHARED_PREFIX | {"stage": "sft", "sft": {"count": 2, "batch": 2, "micro_batch": 2}}


def test_a_second_training_in_a_folder_is_refused(
    train: Callable[..., Path], settings: Settings, sft: Settings, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    with lock_folder(tmp_path / "run"):
        with pytest.raises(UsageError, match="Another podium"):
            train(settings | SHARED_PREFIX)
        with pytest.raises(UsageError, match="Another podium"):
            run_sft(TrainSettings.model_validate(sft), tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_a_start_that_the_gate_refused_learns_after_it_is_widened(
    train: Callable[..., Path], settings: Settings
) -> None:
    settings |= SHARED_PREFIX
    with pytest.raises(UsageError, match="widen the gate"):
        train(settings | {"grpo": settings["grpo"] | {"gate": {"first_worker_entropy": 9.0}}})
    assert Checkpoint.read(train(settings))
    with pytest.raises(RunMismatchError, match=r"grpo\.lr was"):
        train(settings | {"grpo": settings["grpo"] | {"lr": 1e-3}})


def test_examples_may_change_until_a_run_has_learned_some(sft: Settings, tmp_path: Path) -> None:
    def run(**keys: Any) -> Path:
        settings = TrainSettings.model_validate(sft | {"sft": sft["sft"] | keys})
        return run_sft(settings, tmp_path / "run")

    with pytest.raises(UsageError, match="there is no such file"):
        run(examples=str(tmp_path / "none.jsonl"))
    assert Checkpoint.read(run())
    with pytest.raises(RunMismatchError, match=r"sft\.examples was"):
        run(examples=str(tmp_path / "none.jsonl"))


def test_wrong_target_modules_are_a_config_error_and_may_be_corrected(sft: Settings, tmp_path: Path) -> None:
    def run(module: str) -> Path:
        lora = {
            "engine": "trl",
            "trl": {"gradient_checkpointing": False},
            "lora": {"target_modules": [module]},
        }
        return run_sft(TrainSettings.model_validate(sft | lora), tmp_path / "run")

    with pytest.raises(ConfigError, match="nope"):
        run("nope")
    assert Checkpoint.read(run("q_proj"))


def test_a_folder_of_another_kind_of_run_is_refused(settings: Settings, tmp_path: Path) -> None:
    RunFolder.open(tmp_path / "run", {"eval": {"tasks": "sums"}})
    with (
        pytest.raises(RunMismatchError, match="another configuration"),
        locked_training_folder(tmp_path / "run", TrainSettings.model_validate(settings)),
    ):
        pass
    assert RunFolder(tmp_path / "run").configuration == {"eval": {"tasks": "sums"}}
