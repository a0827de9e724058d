"""The site of the documents is built strictly, and has the pages for readers that are language models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8")
    assert all(f"/{page}/" in pages for page in ("quickstart", "workers", "training"))
    assert "[[worker]]" in (tmp_path / "site" / "llms-full.txt").read_text(encoding="utf-8")
