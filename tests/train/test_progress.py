"""Lines of progress come from a thread, so a step that takes minutes is told too."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from podium.rollout.run_folder import RunFolder
from podium.train.metrics_recorder import IterationRecorder
from podium.train.progress import Progress
from podium.train.rollouts import RolloutSample
from podium.train.schedule import ScheduledGroup
from podium.train.settings import GRPOSettings, TrainSettings


class Said:
    """Lines, and a way to wait for the first."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.told = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.told.set()


def test_progress_prints_a_line_before_the_first_item() -> None:
    said = Said()
    progress = Progress(said, noun="examples", first_s=0.01)
    progress.phase("loading the model")
    with progress:
        assert said.told.wait(30)
    assert said.lines[-1] == "loading the model, 0:00 gone"


def test_progress_line_shows_count_speed_and_remaining_time() -> None:
    progress = Progress(print, noun="plans", total=1000)
    progress.phase("iteration 2/5")
    progress.begin(200)
    progress.advance(100, tokens=5000)
    phase, done, speed, gone, left = progress.line().split(", ")
    assert (phase, done) == ("iteration 2/5", "300 of 1,000 plans")
    assert speed.endswith(" tokens a second")
    assert gone.endswith(" gone")
    assert left.endswith(" left")


def test_progress_line_shows_no_more_time_than_the_run_has() -> None:
    progress = Progress(print, noun="plans", total=10**9)
    progress.begin(0, within_s=90.0)
    progress.advance(1, tokens=50)
    assert progress.line().endswith("1:30 left")


def test_the_first_and_the_last_step_are_told_at_once() -> None:
    said = Said()
    progress = Progress(said, noun="examples", total=3)
    progress.begin(0)
    for loss in (3.0, 2.0, 1.0):
        progress.advance(1, tokens=10)
        progress.record_loss(loss)
    assert ["loss 3" in said.lines[0], "loss 1" in said.lines[1], len(said.lines)] == [True, True, 2]


def test_progress_counts_skipped_items_as_done() -> None:
    progress = Progress(print, noun="plans", total=100)
    progress.begin(0)
    progress.advance(10, tokens=10)
    progress.phase("iteration 2/2", done=50)
    progress.advance(1, tokens=1)
    assert "51 of 100 plans" in progress.line()


@pytest.mark.parametrize(("minutes", "left"), [(None, "0:30"), (0.25, "0:05"), (0.1, "0:00")])
def test_each_iteration_is_told_with_the_time_to_the_nearer_end(
    tmp_path: Path, minutes: float | None, left: str
) -> None:
    said: list[str] = []
    settings = TrainSettings(start="-", grpo=GRPOSettings(iterations=4, minutes=minutes))
    run = RunFolder.open(tmp_path / "run", settings)
    progress = Progress(said.append, noun="plans")
    recorder = IterationRecorder(settings, run=run, progress=progress)
    recorder.resume(0)
    recorder.record([], loss=0.0, seconds={"sample": 10.0}, evaluation=None)
    assert said[0] == f"Training {tmp_path / 'run'}: 4 iterations"
    assert said[1].startswith("iteration    1/4  reward 0.000  valid   0.0%")
    assert said[1].endswith(f"{left} left")


def test_a_resumed_run_remembers_for_how_long_nothing_was_learned(tmp_path: Path) -> None:
    settings = TrainSettings(start="-", grpo=GRPOSettings(iterations=9, patience=3))
    run = RunFolder.open(tmp_path / "run", settings)
    for start in range(3):
        recorder = IterationRecorder(settings, run=run, progress=Progress(lambda line: None, noun="plans"))
        recorder.resume(start)
        assert not recorder.is_over
        samples = [RolloutSample(ScheduledGroup(start, 0, 0, "t", f"{start}"), n) for n in range(2)]
        goes_on = recorder.record(samples, loss=0.0, seconds={"sample": 1.0}, evaluation=None)
        assert goes_on == (start < 2)
    recorder.resume(3)
    assert recorder.is_over
