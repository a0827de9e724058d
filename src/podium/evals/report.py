"""The report of a run: one HTML page that needs nothing else, drawn from the run's own files.

It reads `metrics.jsonl` (training) and `comparison.json` (evaluation), and shows what is there; `page` draws.
"""

from __future__ import annotations

from pathlib import Path

from podium.errors import UsageError
from podium.evals.comparison import Comparison
from podium.evals.page import render_page
from podium.rollout.run_folder import RunFolder, replace_file

COMPARISON, REPORT = "comparison.json", "report.html"
"""Names of the files in a run folder."""


def write_report(run: Path, *, title: str | None = None) -> Path:
    """Write `report.html` into the run folder, and return its path.

    Raises:
        UsageError: the folder is missing or holds neither metrics nor a comparison.
    """
    if not run.is_dir():
        raise UsageError(f"{run}: there is no such run folder; check the path.")
    try:
        metrics = RunFolder(run).rows().read()
    except ValueError:
        raise UsageError(f"{run}: its metrics.jsonl is damaged; mend or remove it.") from None
    comparison = Comparison.load(run / COMPARISON) if (run / COMPARISON).is_file() else None
    if not metrics and comparison is None:
        raise UsageError(f"{run}: holds neither metrics nor {COMPARISON}; give the folder of a run.")
    path = run / REPORT
    replace_file(path, render_page(title or run.resolve().name, metrics, comparison).encode())
    return path
