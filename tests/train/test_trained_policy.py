"""The folder of a trained policy, written from what an engine saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.errors import StoreError
from podium.train.settings import TrainSettings
from podium.train.trained_policy import podium_file, write_policy
from scripted_team import open_team
from small_disk import small_disk
from tiny_policy import write_policy as write_start


def test_worker_that_no_question_had_has_no_number_for_the_policy(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start")
    settings = TrainSettings.model_validate(
        {"start": str(start), "prompt": {"pool": "anonymous"}, "pool_sampling": {"without": ["ada"]}}
    )
    pool = open_team()
    scope = podium_file(settings, Checkpoint.read(start), pool).scope
    assert scope.workers == pool.names[1:]
    assert scope.misfit(pool)
    assert scope.misfit(pool.subset(range(1, len(pool)))) is None


def test_full_disk_leaves_no_policy_and_says_so_in_a_sentence(tmp_path: Path) -> None:
    start = Checkpoint.read(write_start(tmp_path / "start"))
    write_start(tmp_path / "run" / "trained")
    settings, pool = TrainSettings(start=str(start.path)), open_team()
    with (
        small_disk(1000),
        pytest.raises(StoreError, match=r"policy cannot be written \(.*large\)") as full,
    ):
        write_policy(tmp_path / "run", settings, start, pool)
    assert "\n" not in str(full.value)
    assert not (tmp_path / "run" / "policy").exists()
    write_policy(tmp_path / "run", settings, start, pool)
    assert Checkpoint.read(tmp_path / "run" / "policy").parameters()
