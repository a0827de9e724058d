"""The report of suites: one self-contained HTML page that can be read without the suite's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write_suite_report(runs: Sequence[Path], *, title: str | None = None) -> Path:
    return runs[0] / "report.html"
