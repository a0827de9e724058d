"""What a tracker is told of a run: TensorBoard's event file, read back; skipped where TensorBoard is not installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorboard", reason="TensorBoard is not installed")


def test_collapse_figures_and_evaluations_are_in_the_event_file(
    train: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415
        EventAccumulator,
    )

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    train(
        settings
        | {
            "trl": settings["trl"] | {"report_to": "tensorboard"},
            "grpo": settings["grpo"] | {"eval_every": 2, "eval_questions": 2},
        }
    )

    events = EventAccumulator(str(tmp_path / "board")).Reload()
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for name in (
        "worker_entropy",
        "topology_entropy",
        "commonest_plan",
        "zero_variance_groups",
        "unreadable",
    ):
        told = [event.value for event in events.Scalars(f"train/podium/{name}")]
        assert told == pytest.approx([row[name] for row in rows])
    (accuracy,) = events.Scalars("train/podium/evaluation/accuracy")
    assert accuracy.value == pytest.approx(rows[1]["evaluation"]["accuracy"])
    assert events.Scalars("train/reward")
