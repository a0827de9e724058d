"""`podium eval --run`: the run's own policy, pool and tasks; and what was computed is shown before it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.config import Settings
from podium.evals import Comparison
from podium.rollout.run_folder import RunFolder
from podium.train.settings import TrainSettings
from refused_commands import one_sentence
from small_recording import record_small
from tiny_policy import write_policy

Podium = Callable[..., Any]
POOL = "".join(
    f'[[worker]]\nname = "{name}"\nkind = "replay"\nrecording = "mine.parquet"\nprice = {{ output = 1.0 }}\n'
    for name in ("ada", "bob")
)
NAMED = ("--tasks", "mine.parquet", "--pool", "mine.toml")
MINE = {"tasks": "mine.parquet", "pool": "mine.toml"}


def record(seconds: float | None = None) -> None:
    """8 questions, of which ada knows the even ones and bob none; each response took so long."""
    knows = {"ada": lambda number: number % 2 == 0, "bob": lambda number: False}
    record_small(Path("mine.parquet"), knows, questions=8, train=5, seconds=seconds)


@pytest.fixture(autouse=True)
def _recording() -> None:
    record()
    Path("mine.toml").write_text(POOL + '[[worker]]\nname = "vote"\nkind = "vote"\n')


def trained(settings: Settings, *, policy: bool = False) -> None:
    """The folder of a run of these settings."""
    RunFolder.open(Path("r"), settings.model_dump(mode="json"))
    if policy:
        said = {
            "prompt": {"style": "brief", "levels": 8},
            "conducts": {"questions": "recorded questions", "ratings": True},
        }
        write_policy(Path("r/policy"), podium=said)


def comparison(podium: Podium, *tokens: str) -> Comparison:
    shown = podium("eval", *tokens, "--json")
    assert shown.status == 0, shown.err
    return Comparison.model_validate_json(shown.out)


# --- what the run was trained on ---------------------------------------------------------------------------


def test_run_is_evaluated_on_its_training_tasks_and_pool(podium: Podium) -> None:
    trained(TrainSettings(start="-", **MINE))
    found = comparison(podium, "--run", "r")
    assert (found.tasks, found.pool) == ("mine/test", ("ada", "bob", "vote"))
    assert found == Comparison.load(Path("r/comparison.json"))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (TrainSettings(start="-", tasks="gone.parquet", pool="gone.toml"), NAMED),
        (TrainSettings(start="-", tasks="mine.parquet", pool="gone.toml"), NAMED[2:]),
        (TrainSettings(start="-", tasks="gone.parquet", pool="mine.toml"), NAMED[:2]),
    ],
    ids=["both", "the pool alone", "the tasks alone"],
)
def test_named_tasks_and_pool_override_those_of_the_run(
    podium: Podium, settings: TrainSettings, named: tuple[str, ...]
) -> None:
    trained(settings)
    found = comparison(podium, "--run", "r", *named)
    assert (found.tasks, found.pool) == ("mine/test", ("ada", "bob", "vote"))


def test_run_without_recorded_tasks_is_refused(podium: Podium) -> None:
    assert "No questions are named" in one_sentence(podium("eval", "--run", "r", "--pool", "mine.toml"))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (TrainSettings(start="-", tasks="there/gone.parquet", pool="mine.toml"), "there/gone.parquet"),
        (TrainSettings(start="-", tasks="mine.parquet", pool="there/gone.toml"), "there/gone.toml"),
    ],
)
def test_missing_training_files_of_a_run_are_named_with_a_remedy(
    podium: Podium, settings: TrainSettings, name: str
) -> None:
    trained(settings)
    assert (
        f"r was trained on {name}, which cannot be found from this folder; run the command in the folder of the "
        "training, or name --pool and --tasks."
    ) in one_sentence(podium("eval", "--run", "r"))
    assert not Path("r/comparison.json").exists()


# --- cost sensitivity --------------------------------------------------------------------------------------


def test_cost_sensitivity_applies_to_the_policy_of_the_run_and_its_label(podium: Podium) -> None:
    podium("rate", "mine.parquet", "ratings.json", "--pool", "mine.toml", "--clusters", "1")
    Path("mine.toml").write_text('ratings = "ratings.json"\n' + Path("mine.toml").read_text())
    trained(TrainSettings(start="-", **MINE), policy=True)
    levels = comparison(podium, "--run", "r").rows
    assert [row.label for row in levels if row.kind == "conductor"] == [
        f"Conductor, cost sensitivity {level}" for level in range(8)
    ]
    (one,) = [
        row
        for row in comparison(podium, "--run", "r", "plan.cost_sensitivity=2.5").rows
        if row.kind == "conductor"
    ]
    assert one.label == "Conductor, cost sensitivity 2.5"


def test_cost_sensitivity_is_refused_without_a_conductor(podium: Podium) -> None:
    refused = one_sentence(podium("eval", *NAMED, "plan.cost_sensitivity=2"))
    assert "plan.cost_sensitivity is for a Conductor" in refused


# --- what is shown and written -----------------------------------------------------------------------------


def test_evaluation_table_states_questions_set_seed_and_limits(
    podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = podium("eval", *NAMED, "--max-steps", "4", "--rounds", "2")
    assert "3 held-out questions of mine/test, seed 0, at most 4 steps, 2 rounds." in shown.out


def test_a_table_is_printed_even_if_it_cannot_be_written(podium: Podium) -> None:
    Path("r/report.html").mkdir(parents=True)
    shown = podium("eval", *NAMED, "--run", "r", "--markdown")
    assert shown.status != 0
    assert "| ada alone |" in shown.out
    assert "report.html cannot be written" in shown.err


def test_a_worker_that_takes_for_ever_loses_neither_table_nor_report(podium: Podium) -> None:
    record(seconds=1e308)
    Path("mine.toml").write_text(POOL)
    shown = podium("eval", *NAMED, "--run", "r", "--markdown")
    assert (shown.status, "| ada alone |" in shown.out) == (0, True)
    assert podium("report", "r").status == 0


def test_json_and_markdown_together_are_refused(podium: Podium) -> None:
    refused = one_sentence(podium("eval", *NAMED, "--json", "--markdown"))
    assert "--json and --markdown exclude each other; give one of them." in refused
