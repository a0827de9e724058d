import logging
import os
import sys
from pathlib import Path

import pytest

# Where NumPy is loaded before Podium: threads that wait by spinning make the Conductor many times slower here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

POOL = """
[[worker]]
name = "ada"
kind = "scripted"
replies = { "the whole question" = "2 + 3 = 5\\nAnswer: 5" }
price = { input = 1.0, output = 2.0 }

[[worker]]
name = "eve"
kind = "scripted"
replies = { "the whole question" = { error = "protocol", message = "No text came." } }

[[worker]]
name = "tom"
kind = "scripted"
replies = { "the whole question" = "Answer: 5" }
delay = 600.0
"""


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for whatever Podium and Inspect keep, and the process's logging as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "traces.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("INSPECT_EVAL_MODEL", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    Path("pool.toml").write_text(POOL)
