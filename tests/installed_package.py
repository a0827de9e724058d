"""A package that is installed for one test: a module, and the entry points that name what is in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def install_package(
    monkeypatch: pytest.MonkeyPatch, site: Path, package: str, entries: str, code: str | None = None
) -> None:
    """What an installer leaves in the folder `site`, which is on the path from then on.

    Args:
        entries: the text of entry_points.txt.
        code: of the module `package`. None: the module is there already.
    """
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    if code is not None:
        (site / f"{package}.py").write_text(code)
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(str(site))
