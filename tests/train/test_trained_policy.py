"""The folder of a trained policy, written from what an engine saved."""

from __future__ import annotations

from pathlib import Path

from podium.conductor.checkpoint import Checkpoint
from podium.train.settings import TrainSettings
from podium.train.trained_policy import podium_file
from scripted_team import open_team
from tiny_policy import write_policy as write_start


def test_worker_that_no_question_had_is_not_among_the_numbers_of_the_policy(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start")
    settings = TrainSettings.model_validate(
        {"start": str(start), "prompt": {"pool": "anonymous"}, "pool_sampling": {"without": ["ada"]}}
    )
    pool = open_team()
    scope = podium_file(settings, Checkpoint.read(start), pool).scope
    assert scope.workers == pool.names[1:]
    assert scope.misfit(pool)
    assert scope.misfit(pool.subset(range(1, len(pool)))) is None
