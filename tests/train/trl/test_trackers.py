"""What a tracker is told of a run, as one of transformers' own is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerCallback
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

FIGURES = ("worker_entropy", "topology_entropy", "commonest_plan", "zero_variance_groups", "unreadable")


def test_a_tracker_is_told_the_figures_of_plans_and_of_evaluations(
    train: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, float]] = []

    class Tracker(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            told.append(dict(kwargs["logs"]))

    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "tensorboard", Tracker)
    train(
        settings
        | {
            "trl": settings["trl"] | {"report_to": "tensorboard"},
            "grpo": settings["grpo"] | {"eval_every": 2, "eval_questions": 2},
        }
    )

    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [logs for logs in told if "loss" in logs]
    assert len(steps) == len(rows) == 2
    for logs, row in zip(steps, rows, strict=True):
        assert {name: logs[f"podium/{name}"] for name in FIGURES} == pytest.approx(
            {name: row[name] for name in FIGURES}
        )
        assert "reward" in logs
    assert "podium/evaluation/accuracy" not in steps[0]
    assert steps[1]["podium/evaluation/accuracy"] == pytest.approx(rows[1]["evaluation"]["accuracy"])
