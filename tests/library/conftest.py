from pathlib import Path

import pytest

POOL = """
[[worker]]
name = "ada"
kind = "scripted"
replies = { "the whole question" = "2 + 3 = 5\\nAnswer: 5" }
price = { input = 1.0, output = 2.0 }

[[worker]]
name = "tom"
kind = "scripted"
replies = { "the whole question" = "Answer: 5" }
delay = 600.0
"""


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for the files that Podium writes, with a small pool."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "traces.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Path("pool.toml").write_text(POOL)
