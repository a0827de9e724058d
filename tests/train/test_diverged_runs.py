"""A training whose figures are no longer finite ends in a sentence, and keeps nothing of that step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.errors import DivergedError
from podium.train.metrics_recorder import applied_norm
from podium.train.settings import TrainSettings
from podium.train.sft_run import run_sft

Settings = dict[str, Any]
ENGINES = [{"engine": "shared_prefix", "trl": {}}, {"engine": "trl"}]


def _rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("engine", ENGINES, ids=["shared_prefix", "trl"])
def test_a_supervised_training_that_diverges_says_what_to_lower(
    settings: Settings, engine: Settings, tmp_path: Path
) -> None:
    sft = {"count": 8, "epochs": 4, "batch": 4, "lr": 1e38, "save_every": 1}
    for _ in range(2):  # The checkpoint before it is whole.
        with pytest.raises(DivergedError, match=r"Step (\d+): .* is (nan|inf).* sft\.lr"):
            run_sft(
                TrainSettings.model_validate(settings | engine | {"stage": "sft", "sft": sft}),
                tmp_path / "run",
            )
    assert len(_rows(tmp_path / "run")) < 8


@pytest.mark.parametrize("engine", ENGINES, ids=["shared_prefix", "trl"])
def test_a_reinforcement_that_diverges_says_what_to_lower(
    train: Callable[..., Path], settings: Settings, engine: Settings, tmp_path: Path
) -> None:
    grpo = settings["grpo"] | {"lr": 1e-2, "beta": 1e38, "iterations": 4}
    for _ in range(2):
        with pytest.raises(DivergedError, match=r"Iteration (\d+): .* is (nan|inf).* grpo\.lr"):
            train(settings | engine | {"grpo": grpo})
    assert len(_rows(tmp_path / "run")) < 4


def test_a_step_that_a_gradient_scaler_skipped_is_no_divergence() -> None:
    assert [applied_norm(float("inf"), scaled=scaled) for scaled in (True, False)] == [0.0, float("inf")]
    assert applied_norm(0.5, scaled=True) == 0.5
