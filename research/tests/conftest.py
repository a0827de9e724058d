"""What tests of several folders need: the command line in a folder of its own. Modules in tests/ can be imported."""

from __future__ import annotations

import os

# Read when NumPy and scikit-learn are first imported; their threads spin while they wait, beside those of other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import hypothesis
import pytest

from command_line import Outcome, Podium, run_command

hypothesis.settings.register_profile("untimed", deadline=None)  # Nothing timed decides a test.
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def podium(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Podium:
    """Runs a command in this process, in an empty folder."""
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "kept" / "traces.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)

    def command(*tokens: str, stdin: str | bytes = "") -> Outcome:
        return run_command(tokens, capsys, monkeypatch, stdin=stdin)

    return command
