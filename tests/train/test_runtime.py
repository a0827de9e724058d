"""How torch's process is set up, before torch is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from podium.train.runtime import missing_variables, trains_tiny


def test_settings_progress_and_process_load_no_torch() -> None:
    code = (
        "import sys, json; import podium.train.settings, podium.train.progress, podium.train.runtime;"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == []


def test_variables_that_the_user_has_set_are_left_alone() -> None:
    wanted = missing_variables({})
    assert wanted["OMP_WAIT_POLICY"] == "PASSIVE"
    assert missing_variables(wanted) == {}
    assert "OMP_WAIT_POLICY" not in missing_variables({"OMP_WAIT_POLICY": "ACTIVE"})


def test_only_a_tiny_policy_trains_on_one_thread(ground: dict[str, str], tmp_path: Path) -> None:
    assert "OMP_NUM_THREADS" in missing_variables({}, tiny=True)
    assert missing_variables({}, tiny=False).keys() == {"OMP_WAIT_POLICY"}
    start = ground["start"]
    (tmp_path / "run.toml").write_text(f'start = "{start}"\n')
    for words in (
        [f"start={start}"],
        ["--config", f"{tmp_path}/run.toml"],
        [f"--config={tmp_path}/run.toml"],
    ):
        assert trains_tiny(["--run", "r", *words])
    assert trains_tiny(["--stage", "warmstart"])
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(270_000_000)  # As of a model of 135 million parameters.
    config = ["--config", f"{tmp_path}/run.toml"]
    for words in (
        [*config, f"start={tmp_path}"],
        ["start=someone/on-the-hub"],
        ["--config", "none.toml"],
        [],
    ):
        assert not trains_tiny(words)
