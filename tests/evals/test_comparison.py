"""A comparison says what was measured, and reads whatever it wrote."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from podium.evals import Comparison
from podium.evals.comparison import ComparisonRow
from podium.evals.comparison_table import comparison_markdown, table_notes
from test_pareto_chart import shown


def comparison(rows: tuple[ComparisonRow, ...]) -> Comparison:
    return Comparison(questions=9, seed="0", pool=("a", "b"), rows=rows)


TOLD = {"tasks": "mine/validation", "max_steps": 6, "rounds": 1}


@pytest.mark.parametrize("figure", ["latency_s", "cost_usd"])
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_infinite_figures_are_saved_loaded_and_reported(tmp_path: Path, figure: str, value: float) -> None:
    """A team file may say that a worker takes for ever."""
    endless = ComparisonRow.model_validate({**shown("endless", 0.5, 0.01).model_dump(), figure: value})
    made = comparison((endless, shown("ada", 0.6, 0.01), shown("bob", 0.5, 0.02)))
    made.save(tmp_path / "comparison.json")
    assert json.loads((tmp_path / "comparison.json").read_text())["rows"][0][figure] is None
    read = Comparison.load(tmp_path / "comparison.json")
    assert read == made
    assert getattr(read.rows[0], figure) == math.inf
    assert "| inf |" in comparison_markdown(read)


def test_cost_of_pass_divides_total_cost_by_right_answers() -> None:
    assert shown("ada", 0.5, 0.01).cost_of_pass == pytest.approx(0.02)
    assert shown("bob", 0.0, 0.01).cost_of_pass == math.inf


def test_comparison_notes_describe_the_measured_questions() -> None:
    made = comparison((shown("ada", 0.5, 0.01),)).model_copy(update=TOLD)
    assert next(table_notes(made)).startswith(
        "9 held-out questions of mine/validation, seed 0, at most 6 steps, 1 round. In brackets: "
    )
    again = made.model_copy(update={"max_steps": 1, "rounds": 2})
    assert "seed 0, at most 1 step, 2 rounds." in next(table_notes(again))
