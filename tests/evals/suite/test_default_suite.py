"""The suite of a team: its planner beside workers alone, votes of the same dollars, and what is chosen on training."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evals.recorded_world import world, write_recording
from podium.config import load
from podium.config.toml import toml_text
from podium.errors import UsageError
from podium.evals.comparison import Comparison
from podium.evals.suite.comparisons import comparison_of, evaluations_of
from podium.evals.suite.default_suite import default_suite
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_run import run_suite
from podium.evals.suite.suite_settings import SuiteSettings
from podium.team.team_file import TeamReference, open_pool
from scripted_team import write_sums, write_team
from tiny_policy import write_policy


def suite(*keys: str, **others: Any) -> SuiteSettings:
    team = TeamReference(None, keys).read()
    return default_suite(team, open_pool(team), keys, **others)


def compared(settings: SuiteSettings, folder: Path) -> Comparison:
    manifest = asyncio.run(check_suite(settings.model_copy(update={"processes": 1}), folder))
    results = asyncio.run(run_suite(manifest, folder))
    (table,) = manifest.tables
    return comparison_of(manifest, table, evaluations_of(table, results), results)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Keys of a team of two scripted workers with questions of each split, led by a policy."""
    monkeypatch.chdir(tmp_path)
    write_sums(Path("sums.jsonl"), 12, ("train", "validation", "test"))
    write_team(Path("two.toml"))
    write_policy(Path("leads"))
    return (
        *('pool="two.toml"', 'eval.tasks="sums.jsonl"', 'conductor.checkpoint="leads"'),
        *("eval.questions=4", "eval.tuning=5"),
    )


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.chdir(tmp_path)
    write_recording(tmp_path / "world.parquet", world())
    worker = (
        '[[worker]]\nname = "{}"\nkind = "replay"\nrecording = "world.parquet"\nprice = {{ output = 1.0 }}\n'
    )
    Path("replay.toml").write_text("".join(map(worker.format, ("ada", "bob", "cy"))))
    return ('pool="replay.toml"', 'eval.tasks="world.parquet"', "eval.questions=6", "eval.tuning=8")


def test_a_planner_is_compared_at_equal_cost(live: tuple[str, ...], tmp_path: Path) -> None:
    found = compared(suite(*live, untrained="leads"), tmp_path / "r")
    assert [row.label for row in found.rows][:4] == [
        "Conductor",
        "Conductor: untrained",
        "Conductor: self-consistency",
        "Conductor: best-vote",
    ]
    assert {"single", "random", "oracle"} <= {row.kind for row in found.rows}
    first = found.rows[0]
    votes = [
        row for row in found.rows if row.label in ("Conductor: self-consistency", "Conductor: best-vote")
    ]
    singles = [row for row in found.rows if row.kind == "single"]
    for vote in votes:
        assert vote.cost_usd <= max(first.cost_usd, min(row.cost_usd for row in singles)) * 1.5
        assert vote.adjusted_p is not None
    assert any("chosen on training questions" in note for note in found.notes)


def test_the_written_suite_is_read_again(live: tuple[str, ...], tmp_path: Path) -> None:
    made = suite(*live, "budget.calls=3", seed=4)
    written = made.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    (tmp_path / "suite.toml").write_text(toml_text(written))
    again = load(tmp_path / "suite.toml", SuiteSettings, ())
    assert again.model_dump() == made.model_dump()
    assert (list(again.all_seeds), again.budget.calls) == ([4], 3)


def test_without_training_questions_nothing_is_chosen(live: tuple[str, ...]) -> None:
    entries = suite(*live[:-1], "eval.tuning=0").planner
    assert not any(entry.controls for entry in entries)
    with pytest.raises(UsageError, match="evaluate on another --split"):
        suite(*live, 'eval.split="train"')


def test_default_suite_chooses_votes_on_recorded_training_answers(
    recorded: tuple[str, ...], tmp_path: Path
) -> None:
    found = compared(suite(*recorded), tmp_path / "r")
    kinds = {row.label: row.kind for row in found.rows}
    assert kinds["Best vote of any five answers"] == "committee"
    assert kinds["Best cascade"] == "cascade"
    assert "random" not in kinds.values()
    rows = {row.label: row for row in found.rows}
    singles = [row for row in found.rows if row.kind == "single"]
    oracle = rows["Oracle (a bound for one answer)"]
    assert oracle.accuracy.mean >= max(row.accuracy.mean for row in singles)
    assert oracle.calls == 1
