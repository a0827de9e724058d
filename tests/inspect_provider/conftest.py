import logging
import sys
from pathlib import Path

import pytest

from command_line import enter
from scripted_team import write_answers


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for whatever Podium and Inspect keep, and the process's logging as it was."""
    enter(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("INSPECT_EVAL_MODEL", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    write_answers(tmp_path / "pool.toml")
