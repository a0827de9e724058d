"""A comparison says what was measured, reads whatever it wrote, and reads what was written before it said so."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from test_pareto_chart import comparison, shown

from podium.evals import Comparison
from podium.evals.comparison import ComparisonRow
from podium.evals.report import write_report
from podium.evals.table import markdown, notes

TOLD = {"tasks": "mine/validation", "max_steps": 6, "rounds": 1}


@pytest.mark.parametrize("figure", ["latency_s", "cost_usd"])
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_figures_without_end_are_read_back_and_reported(tmp_path: Path, figure: str, value: float) -> None:
    """A pool file may say that a worker takes for ever."""
    endless = ComparisonRow.model_validate({**shown("endless", 0.5, 0.01).model_dump(), figure: value})
    made = comparison((endless, shown("ada", 0.6, 0.01), shown("bob", 0.5, 0.02)))
    made.save(tmp_path / "comparison.json")
    assert json.loads((tmp_path / "comparison.json").read_text())["rows"][0][figure] is None
    read = Comparison.load(tmp_path / "comparison.json")
    assert read == made
    assert getattr(read.rows[0], figure) == math.inf
    assert "endless" in write_report(tmp_path).read_text(encoding="utf-8")
    assert "| inf |" in markdown(read)


def test_below_the_table_and_in_the_report_stands_what_was_measured(tmp_path: Path) -> None:
    made = comparison((shown("ada", 0.5, 0.01),)).model_copy(update=TOLD)
    assert next(notes(made)).startswith(
        "9 held-out questions of mine/validation, seed 0, at most 6 steps, 1 round. In brackets: "
    )
    again = made.model_copy(update={"max_steps": 1, "rounds": 2})
    assert "seed 0, at most 1 step, 2 rounds." in next(notes(again))
    made.save(tmp_path / "comparison.json")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert page.count("9 held-out questions of mine/validation") == 2


def test_an_older_file_is_read_and_says_what_it_knows(tmp_path: Path) -> None:
    older = json.loads(comparison((shown("ada", 0.5, 0.01),)).model_dump_json())
    for field in TOLD:
        del older[field]
    (tmp_path / "comparison.json").write_text(json.dumps(older))
    read = Comparison.load(tmp_path / "comparison.json")
    assert next(notes(read)).startswith("9 held-out questions, seed 0. In brackets: ")
