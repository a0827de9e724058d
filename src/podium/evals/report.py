"""The report of a run: one HTML page that needs nothing else, drawn from the run's own files.

It reads `metrics.jsonl` (training) and `comparison.json` (evaluation), and shows what is there; `page` draws.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from podium.errors import UsageError
from podium.evals.comparison import Comparison
from podium.evals.page import render_page

METRICS, COMPARISON, REPORT = "metrics.jsonl", "comparison.json", "report.html"
"""Names of the files in a run folder."""


def write_report(run: Path, *, title: str | None = None) -> Path:
    """Write `report.html` into the run folder, and return its path.

    Raises:
        UsageError: the folder is missing or holds neither metrics nor a comparison.
    """
    if not run.is_dir():
        raise UsageError(f"{run}: there is no such run folder; check the path.")
    metrics = read_metrics(run / METRICS) if (run / METRICS).is_file() else []
    comparison = Comparison.load(run / COMPARISON) if (run / COMPARISON).is_file() else None
    if not metrics and comparison is None:
        raise UsageError(f"{run}: holds neither {METRICS} nor {COMPARISON}; give the folder of a run.")
    path = run / REPORT
    partial = path.with_suffix(".html.part")
    partial.write_text(render_page(title or run.resolve().name, metrics, comparison), encoding="utf-8")
    partial.replace(path)
    return path


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics file; a last line that a killed run left unfinished is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            if number < len(lines):
                raise UsageError(f"{path}: line {number} is not JSON; the file is damaged.") from None
    return rows
