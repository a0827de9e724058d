"""`podium report`: the page of a run, drawn from the files in its folder."""

from __future__ import annotations

from pathlib import Path

from podium.evals.report import write_report


def report(run: Path, /, *, title: str | None = None) -> int:
    """Write a run's report.html; prints where it is.

    Args:
        run: The folder of a training or evaluation run.
        title: The heading. Default: the folder's name.
    """
    print(write_report(run, title=title))
    return 0
