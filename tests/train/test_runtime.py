"""How torch's process is set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def test_settings_progress_and_process_load_no_torch() -> None:
    code = (
        "import sys, json; import podium.train.settings, podium.train.progress, podium.train.runtime;"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == []


def test_tiny_models_use_one_thread_unless_the_user_says() -> None:
    code = (
        "import os, torch; from podium.train.runtime import compute_on_one_core;"
        "torch.set_num_threads(2); compute_on_one_core(); print(torch.get_num_threads());"
        "del os.environ['OMP_NUM_THREADS']; compute_on_one_core(); print(torch.get_num_threads())"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["2", "1"]
