"""How torch's process is set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def test_settings_progress_and_process_load_no_torch() -> None:
    code = (
        "import sys, json; import podium.train.settings, podium.train.progress, podium.train.runtime;"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == []


@pytest.mark.parametrize(("environment", "threads"), [({}, 1), ({"OMP_NUM_THREADS": "2"}, 2)])
def test_tiny_models_use_one_thread_unless_the_user_says(environment: dict[str, str], threads: int) -> None:
    code = (
        "import torch; torch.set_num_threads(2); from podium.train.runtime import compute_on_one_core;"
        "compute_on_one_core(); print(torch.get_num_threads())"
    )
    clean = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    said = subprocess.run(
        [sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True, check=True
    )
    assert int(said.stdout) == threads
