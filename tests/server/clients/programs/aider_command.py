"""aider: the command, which asks one question and edits nothing."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import BLUE, UNKNOWN, V1, run


def aider(*options, model="openai/podium"):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                Path(sys.executable).parent / "aider",
                "--model", model,
                "--openai-api-base", V1,
                "--openai-api-key", "x",
                "--chat-mode", "ask",
                "--no-git",
                "--yes-always",
                "--no-show-model-warnings",
                "--no-check-update",
                "--analytics-disable",
                "--no-auto-lint",
                "--no-detect-urls",
                "--message", BLUE,
                *options,
            ],
            env=os.environ | {"HOME": folder, "NO_COLOR": "1", "TERM": "dumb"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )  # fmt: skip
        return done.stdout + done.stderr


run(
    {
        "text": lambda: aider("--no-stream"),
        "stream": lambda: aider("--stream"),
        "unknown model": lambda: aider(model=f"openai/{UNKNOWN}"),
    }
)
