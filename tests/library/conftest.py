from pathlib import Path

import pytest

from command_line import enter
from scripted_team import write_answers


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for the files that Podium writes, with a small pool."""
    enter(tmp_path, monkeypatch)
    write_answers(tmp_path / "pool.toml")
