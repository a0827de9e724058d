"""Compares a page that lists planners with what their `PlannerSpec` says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from podium.planners import VOTE, PlannerSpec

ROW = re.compile(
    r"^\| `(?P<form>[^`]+)` \|.*\|(?P<needs>[^|]*)\| (?P<recording>yes|no) \|[^|]*\|$", re.MULTILINE
)


def check_page(page: Path, baselines: Iterable[PlannerSpec]) -> None:
    """Each planner has a row, with what it needs, and whether a recording can serve it."""
    rows = {row["form"]: row for row in ROW.finditer(page.read_text(encoding="utf-8"))}
    known = {baseline.syntax: baseline for baseline in baselines}
    assert sorted(rows) == sorted(known)
    for form, baseline in known.items():
        row = rows[form]
        assert (row["recording"] == "yes") == baseline.on_recordings, form
        assert (VOTE in row["needs"]) == (VOTE in baseline.needs("")), form
        assert ("scored answers" in row["needs"]) == baseline.learns, form
