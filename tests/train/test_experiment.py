"""A training run from its configuration: real tasks, real specialists, a policy made on the spot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

import podium
from podium.config import build
from podium.errors import CheckpointError, RunMismatchError
from podium.recordings import Recording, Response
from podium.team.opening import open_pool
from podium.train.experiment import finite_tasks, make_draw_tasks, run_experiment
from podium.train.settings import Experiment, GRPOSettings, Stage
from podium_lab.warmstart.supervised import SupervisedStage, WarmStartSettings, run_warmstart

ASSETS = Path(podium.__file__).parent / "assets"
TINY = {"iterations": 2, "questions": 2, "group": 4, "max_tokens": 24, "save_every": 1}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warmstart") / "run"
    settings = WarmStartSettings(
        stages=(SupervisedStage(steps=4),),
        batch=8,
        vocabulary=700,
        vocabulary_examples=200,
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
    pool = open_pool(settings.pool)
    draw = make_draw_tasks(settings, pool, finite_tasks(settings, pool))
    drawn = [[task.question.text for task, _ in draw(iteration)] for iteration in range(6)]
    epochs = [[text for iteration in drawn[at : at + 3] for text in iteration] for at in (0, 3)]
    assert set(epochs[0]) == set(epochs[1]) == {f"What is {number} + 1?" for number in range(2, 8)}
    assert epochs[0] != epochs[1]


def test_a_warning_says_what_is_left_out_of_a_recording(
    make_recording: Callable[..., Recording], policy: Path, tmp_path: Path
) -> None:
    settings = experiment(policy, *recorded(make_recording, tmp_path, unjudged=2))
    warnings: list[str] = []
    pool = open_pool(settings.pool)
    draw = make_draw_tasks(settings, pool, finite_tasks(settings, pool, warnings.append))
    assert {task.question.text for task, _ in draw(0) + draw(1)} == {
        f"What is {number} + 1?" for number in range(2, 6)
    }
    assert [warning.partition(",")[0] for warning in warnings] == [
        "small/train: 2 of 6 questions are left out"
    ]


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
    with pytest.raises(ValidationError, match="each other after the one before"):
        Experiment(curriculum=tuple(Stage(start=start, hop_shares=(1.0,)) for start in starts))


@pytest.mark.parametrize("shares", [(), (0.0, 0.0), (-0.5, 1.5), (float("nan"),), (0.2, 0.2, 0.2, 0.2, 0.2)])
def test_shares_of_which_no_embedded_question_can_be_drawn_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        Experiment.model_validate({"curriculum": [{"start": 0, "hop_shares": shares}]})


def test_questions_of_the_world_may_have_six_hops() -> None:
    six = {"start": 0, "hop_shares": (0, 0, 0, 0, 0, 1)}
    assert Experiment.model_validate({"tasks": "world", "curriculum": [six]}).curriculum[0].start == 0


def test_an_endless_set_is_drawn_with_its_own_hops_unless_there_is_a_curriculum() -> None:
    grpo = GRPOSettings(questions=60)
    plain = Experiment(tasks="world", grpo=grpo)
    stages = (Stage(start=0, hop_shares=(1.0,)), Stage(start=1, hop_shares=(0.0, 0.0, 1.0)))
    staged = plain.model_copy(update={"curriculum": stages})
    hops = [
        {task.facts["hops"] for task, _ in make_draw_tasks(settings, open_pool())(iteration)}
        for settings in (plain, staged)
        for iteration in (0, 1)
    ]
    assert hops == [{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, {1}, {3}]


def test_training_needs_no_extra_but_train() -> None:
    """`make demo` installs no other."""
    absent = "sys.modules |= dict.fromkeys(('scipy', 'sklearn', 'reasoning_gym', 'sentence_transformers', 'cmaes'))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{absent}\nimport podium.cli.training"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
