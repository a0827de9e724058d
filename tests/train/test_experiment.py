"""A training run from its configuration: real tasks, real specialists, a policy made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from podium.config import build
from podium.errors import CheckpointError, RunMismatchError
from podium.recordings import Recording, Response
from podium.train.experiment import Experiment, Stage, draw_of, run_experiment
from podium.warmstart.supervised import SupervisedStage, WarmStartSettings, run_warmstart
from podium.workers.pool import open_pool

TINY = {"iterations": 2, "questions": 2, "group": 4, "max_tokens": 24, "save_every": 1}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warmstart") / "run"
    settings = WarmStartSettings(
        stages=(SupervisedStage(steps=4),),
        batch=8,
        vocabulary=700,
        vocabulary_lessons=200,
        hidden=32,
        layers=1,
        heads=2,
        kv_heads=1,
        inner=64,
    )
    run_warmstart(settings, folder, check_cases=2)
    return folder / "policy"


def experiment(policy: Path, *overrides: str) -> Experiment:
    return build({"start": str(policy), "grpo": TINY}, Experiment, overrides)


async def test_a_run_leaves_metrics_and_a_policy_that_can_be_trained_on(policy: Path, tmp_path: Path) -> None:
    trained = await run_experiment(experiment(policy), tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [0, 1]
    again = await run_experiment(
        experiment(trained, "pool=embedded-many", "pool_draw.random=true"), tmp_path / "again"
    )
    assert (again / "model.safetensors").is_file()


async def test_a_run_of_another_configuration_is_refused_by_the_key(policy: Path, tmp_path: Path) -> None:
    await run_experiment(experiment(policy), tmp_path / "run")
    with pytest.raises(RunMismatchError, match=r"reward\.cost was 0\.0 and is now 5"):
        await run_experiment(experiment(policy, "reward.cost=5"), tmp_path / "run")
    await run_experiment(experiment(policy, "grpo.minutes=9"), tmp_path / "run")


async def test_a_start_that_is_no_checkpoint_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        await run_experiment(experiment(tmp_path / "none"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def recorded(make_recording: Callable[..., Recording], folder: Path, *, unjudged: int = 0) -> tuple[str, str]:
    """Overrides for tasks and pool: a recording of 6 training questions, and two workers of it.

    Args:
        unjudged: of the last questions, responses without a verdict.
    """
    given = {
        f"What is {number} + 1?": [
            Response(
                "ada", 0, f"Answer: {number + 1}", f"{number + 1}", None if 8 - number <= unjudged else 1.0
            ),
            Response("bob", 0, "Answer: 0", "0", 0.0),
        ]
        for number in range(8)
    }
    splits = {text: "validation" if text < "What is 2" else "train" for text in given}
    recording = make_recording(given, splits=splits)
    worker = '[[worker]]\nname = "{0}"\nkind = "replay"\nrecording = "{1}"\n'
    (folder / "pool.toml").write_text(
        "".join(worker.format(name, recording.path.name) for name in recording.workers)
    )
    return f"tasks={recording.path}", f"pool={folder / 'pool.toml'}"


def test_questions_of_a_recording_come_in_turn(
    make_recording: Callable[..., Recording], policy: Path, tmp_path: Path
) -> None:
    settings = experiment(policy, *recorded(make_recording, tmp_path))
    draw = draw_of(settings, open_pool(settings.pool))
    asked = [[task.question.text for task, _ in draw(iteration)] for iteration in range(6)]
    turns = [[text for iteration in asked[at : at + 3] for text in iteration] for at in (0, 3)]
    assert set(turns[0]) == set(turns[1]) == {f"What is {number} + 1?" for number in range(2, 8)}
    assert turns[0] != turns[1]


def test_what_is_left_out_of_a_recording_is_told(
    make_recording: Callable[..., Recording], policy: Path, tmp_path: Path
) -> None:
    settings = experiment(policy, *recorded(make_recording, tmp_path, unjudged=2))
    told: list[str] = []
    draw = draw_of(settings, open_pool(settings.pool), told.append)
    assert {task.question.text for task, _ in draw(0) + draw(1)} == {
        f"What is {number} + 1?" for number in range(2, 6)
    }
    assert [note.partition(",")[0] for note in told] == ["small/train: 2 of 6 questions are left out"]


async def test_a_policy_trains_on_recorded_answers(
    make_recording: Callable[..., Recording], policy: Path, tmp_path: Path
) -> None:
    settings = experiment(policy, *recorded(make_recording, tmp_path))
    await run_experiment(settings, tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["dropped"] for row in rows] == [0, 0]
    assert set(rows[0]["workers"]) <= {"ada", "bob"}


@pytest.mark.parametrize("starts", [[], [5], [0, 10, 10], [0, 20, 10]])
def test_a_curriculum_that_does_not_go_forward_is_refused(starts: list[int]) -> None:
    with pytest.raises(ValidationError, match="later and later"):
        Experiment(curriculum=tuple(Stage(start=start, hop_shares=(1.0,)) for start in starts))
