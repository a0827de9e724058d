"""A copy of the files of 0.1 to work in, and the command line in this process."""

import os
import shutil
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch

from command_line import Outcome, Podium, run_command

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _old_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder holds the files, where the paths in them are seen from."""
    place = tmp_path / "old"
    shutil.copytree(Path(__file__).parent / "files", place)
    monkeypatch.chdir(place)
    monkeypatch.setenv("PODIUM_STORE", str(place / "traces.sqlite"))
    monkeypatch.setenv("OUTER_KEY", "a-key-of-the-test")
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def podium(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Podium:
    """Runs a command in this process, which is to succeed unless told otherwise."""

    def command(*tokens: str, status: int = 0) -> Outcome:
        outcome = run_command(tokens, capsys, monkeypatch)
        assert outcome.status == status, outcome.err
        return outcome

    return command
