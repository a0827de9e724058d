"""What a run takes from its start, and the folder of a trained policy, written from what an engine saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.conductor.checkpoint import Checkpoint, TrainingScope
from podium.conductor.prompt import PromptSettings
from podium.errors import CheckpointError, StoreError
from podium.train.preflight import preflight
from podium.train.settings import TrainSettings
from podium.train.start import resolve
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
    scope = podium_file(settings, Checkpoint.read(start), pool).conducts
    assert scope.workers == pool.names[1:]
    assert scope.misfit(pool)
    assert scope.misfit(pool.subset(range(1, len(pool)))) is None


@pytest.mark.parametrize(
    ("change", "of_start", "expected"),
    [
        ({}, {}, {"simulated": True}),
        (
            {"prompt": {"pool": "anonymous"}},
            {},
            {"simulated": True, "workers": open_team().names},
        ),
        ({"prompt": {"pool": "anonymous"}, "pool_sampling": {"random": True}}, {}, {"simulated": True}),
        ({}, {"ratings": True}, {"ratings": True}),
    ],
)
def test_a_policy_conducts_pools_such_as_it_was_trained_on(
    tmp_path: Path, change: dict[str, Any], of_start: dict[str, Any], expected: dict[str, Any]
) -> None:
    start = Checkpoint.read(write_start(tmp_path / "start", podium={"conducts": of_start}))
    settings = TrainSettings.model_validate({"start": str(start.path), "tasks": "sums", **change})
    scope = podium_file(settings, start, open_team()).conducts
    assert scope == TrainingScope(questions="the questions of sums", **expected)


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


@pytest.mark.parametrize(
    ("more", "engine"),
    [
        ({}, "shared_prefix"),
        ({"engine": "trl"}, "trl"),
        ({"lora": {"r": 4}}, "trl"),
        ({"trl": {"bf16": True}}, "trl"),
    ],
)
def test_a_run_takes_engine_and_prompt_of_its_start(
    tmp_path: Path, more: dict[str, Any], engine: str
) -> None:
    start = write_start(tmp_path / "start")
    stated = TrainSettings.model_validate({"start": str(start), "prompt": {"levels": 2}} | more)
    assert (stated.engine, stated.prompt.style) == (more.get("engine", "auto"), PromptSettings().style)
    resolved = resolve(stated)
    assert resolved.engine == engine
    assert resolved.prompt == Checkpoint.read(start).prompt.model_copy(update={"levels": 2})
    assert resolve(resolved) == resolved


async def test_a_start_that_cannot_be_read_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    stated = TrainSettings(start=str(tmp_path / "empty"))
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        resolve(stated)
    async with preflight(stated, None) as checks:
        assert "no config.json" in str(checks.problems[0])
        assert (checks.settings.engine, checks.settings.prompt) == ("trl", stated.prompt)
