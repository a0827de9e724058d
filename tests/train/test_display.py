"""What a training run shows."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from podium.train.display import LiveDisplay, PlainDisplay, clock, seconds_left, sparkline, training_display
from podium.train.runtime import missing_variables, trains_tiny


def row(iteration: int) -> dict:
    return {
        "iteration": iteration, "reward": 0.4 + iteration / 100, "valid": 0.9, "accuracy": 0.5, "steps": 2.25,
        "cost_usd": 0.00123, "entropy": 1.0, "workers": {"ada": 0.75, "bram": 0.25},
    }  # fmt: skip


def shown(count: int, *, terminal: bool, iterations: int = 30, minutes: float | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=110, color_system=None)
    with training_display(console, iterations=iterations, minutes=minutes, title="Demo") as display:
        display.begin([], elapsed_s=0.0)
        for iteration in range(count):
            display.show(row(iteration), elapsed_s=2.0 * (iteration + 1))
    return out.getvalue()


def test_a_terminal_sees_place_figures_workers_and_time_left() -> None:
    last = shown(12, terminal=True).rsplit("Demo", 1)[1]
    for part in ("iteration 12/30", "0:24 gone, 0:36 left", "valid plans", "90.0%", "2.25", "ada", "75%"):
        assert part in last


def test_elsewhere_lines_tell_the_first_the_last_and_each_tenth_iteration() -> None:
    lines = shown(23, terminal=False).splitlines()
    assert [line.split("reward")[0].strip() for line in lines] == [
        "Demo: 30 iterations", "iteration    1/30", "iteration   10/30", "iteration   20/30", "iteration   23/30"
    ]  # fmt: skip
    assert lines[2] == (
        "iteration   10/30  reward 0.490  valid  90.0%  accuracy  50.0%  steps 2.25  cost $0.00123  0:40 left"
    )


def test_the_kind_of_display_is_that_of_the_console() -> None:
    assert isinstance(training_display(Console(force_terminal=True), iterations=3), LiveDisplay)
    assert isinstance(training_display(Console(file=io.StringIO()), iterations=3), PlainDisplay)


@pytest.mark.parametrize(
    ("count", "minutes", "left"), [(0, None, None), (5, None, 10.0), (5, 0.25, 5.0), (5, 0.1, 0.0)]
)
def test_time_left_is_that_of_the_nearer_end(count: int, minutes: float | None, left: float | None) -> None:
    rows = [row(k) for k in range(count)]
    assert seconds_left(rows, elapsed_s=10.0, iterations=10, minutes=minutes) == left


def test_clock_and_sparkline() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 125)] == ["0:00", "1:00", "2:05"]
    assert sparkline([0, 1, 2, 3], width=4) == "▁▃▆█"
    assert sparkline([1.0] * 100) == "▁" * 32


def test_settings_display_and_process_load_no_torch() -> None:
    code = (
        "import sys, json; import podium.train.settings, podium.train.display, podium.train.runtime;"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == []


def test_variables_that_the_user_has_set_are_left_alone() -> None:
    wanted = missing_variables({})
    assert wanted["OMP_WAIT_POLICY"] == "PASSIVE"
    assert missing_variables(wanted) == {}
    assert "OMP_WAIT_POLICY" not in missing_variables({"OMP_WAIT_POLICY": "ACTIVE"})


def test_only_a_tiny_policy_trains_on_one_thread(ground: dict[str, str], tmp_path: Path) -> None:
    assert "OMP_NUM_THREADS" in missing_variables({}, tiny=True)
    assert missing_variables({}, tiny=False).keys() == {"OMP_WAIT_POLICY"}
    start = ground["start"]
    (tmp_path / "run.toml").write_text(f'start = "{start}"\n')
    for words in (
        [f"start={start}"],
        ["--config", f"{tmp_path}/run.toml"],
        [f"--config={tmp_path}/run.toml"],
    ):
        assert trains_tiny(["--run", "r", *words])
    assert trains_tiny(["--stage", "warmstart"])
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(270_000_000)  # As of a model of 135 million parameters.
    config = ["--config", f"{tmp_path}/run.toml"]
    for words in (
        [*config, f"start={tmp_path}"],
        ["start=someone/on-the-hub"],
        ["--config", "none.toml"],
        [],
    ):
        assert not trains_tiny(words)
