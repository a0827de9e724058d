"""What tests of several folders need: the command line in a folder of its own. Modules in tests/ can be imported."""

from __future__ import annotations

from process_settings import pytest_collection_finish  # isort: skip - before NumPy

from pathlib import Path

import pytest

from command_line import Outcome, Podium, enter, run_command

__all__ = ["pytest_collection_finish"]


@pytest.fixture
def podium(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Podium:
    """Runs a command in this process, in an empty folder."""
    enter(tmp_path, monkeypatch)

    def command(*tokens: str, stdin: str | bytes = "") -> Outcome:
        return run_command(tokens, capsys, monkeypatch, stdin=stdin)

    return command
