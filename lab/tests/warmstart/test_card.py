"""The model card of a policy that a warm start made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from podium.conductor import Checkpoint
from podium.train.publish import STAGE_NOTE, model_card
from podium_lab.warmstart.supervised import SupervisedStage, WarmStartSettings, stage_note


def test_warm_start_card_states_its_training_data_and_steps(tmp_path: Path) -> None:
    shutil.copytree(Checkpoint.read("world-warmstart").path, tmp_path / "policy")
    stages = (SupervisedStage(steps=1500), SupervisedStage(steps=500))
    settings = WarmStartSettings(tasks="world", pool="orchestra", stages=stages)
    (tmp_path / "config.json").write_text(settings.model_dump_json())
    (tmp_path / STAGE_NOTE).write_text(stage_note(settings))
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 0, "loss": 1.0, "seconds": 1}) + "\n")
    card = model_card(tmp_path, "mine")
    assert "supervised on examples of world, 2000 steps of 32 examples, learning rate 0.002\n" in card
    assert "from fresh weights." in card
    assert "None" not in card
