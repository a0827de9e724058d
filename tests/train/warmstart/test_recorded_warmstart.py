"""The warm start on a recording teaches the questions' own text and the form of plans, and nothing of who is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.prompt import PromptSettings, build_prompt, shortened
from podium.errors import ConfigError
from podium.planner import Situation
from podium.recordings import Recording, Response
from podium.train.warmstart.material import RecordedMaterial, open_material
from podium.train.warmstart.pretraining import WarmStartSettings, WarmStartStage
from podium.train.warmstart.recorded_lessons import MOST_STEPS, random_committee
from podium.train.warmstart.run import run_warmstart
from podium.types import Profile, Question
from podium.workflow import Workflow, check, parse, render

MakeRecording = Callable[..., Recording]
PROFILES = tuple(Profile(name=name) for name in ("ada", "bob", "vote"))


def write_sources(make_recording: MakeRecording, folder: Path, score: float = 1.0) -> tuple[str, str]:
    """A recording of 30 questions and a pool file of its two workers with a vote."""
    given = {
        f"How much is {number} plus {number + 3}? " + "Think of it. " * number: [
            Response(worker, 0, "Answer: 7", "7", score) for worker in ("ada", "bob")
        ]
        for number in range(30)
    }
    splits = {text: "train" if place < 24 else "validation" for place, text in enumerate(given)}
    recording = make_recording(given, splits=splits, name=f"of-{score:g}")
    worker = '[[worker]]\nname = "{0}"\nkind = "replay"\nrecording = "{1}"\n'
    pool = folder / f"pool-{score:g}.toml"
    pool.write_text(
        "".join(worker.format(name, recording.path.name) for name in recording.workers)
        + '[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    return str(recording.path), str(pool)


def test_committees_are_valid_of_every_size_and_end_with_a_vote() -> None:
    rng = Random("committees")
    drawn = [random_committee(rng, PROFILES) for _ in range(400)]
    for workflow in drawn:
        assert check(workflow, workers=3, max_steps=MOST_STEPS) is None
        assert parse(render(workflow), workers=3, max_steps=MOST_STEPS) == workflow
        assert (workflow.steps[-1].worker == 2) == (len(workflow.steps) > 1)
        assert all(step.worker != 2 for step in workflow.steps[:-1])
    assert {len(workflow.steps) for workflow in drawn} == {1, 3, 4, 5, 6}
    alone = [random_committee(rng, PROFILES[:2]) for _ in range(40)]
    assert {len(workflow.steps) for workflow in alone} == {1}


def test_lessons_come_from_training_questions_and_know_no_verdict(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    right, wrong = (
        open_material(*write_sources(make_recording, tmp_path, score), 100) for score in (1.0, 0.0)
    )
    stage = WarmStartStage(steps=1)
    draws = [material.draw(stage.shares, 0.0) for material in (right, wrong)]
    lessons = [draws[0]("0", index) for index in range(60)]
    assert lessons == [draws[1]("0", index) for index in range(60)]
    texts = ["".join([lesson.prompt, *(text for text, _ in lesson.pieces)]) for lesson in lessons]
    asked = {int(text.removeprefix("Question: How much is ").split(" ")[0]) for text in texts}
    assert asked <= set(range(24))
    assert len(asked) > 15
    plans = [lesson for lesson in lessons if lesson.prompt]
    assert 0 < len(plans) < len(lessons)
    for lesson in plans:
        assert isinstance(parse(lesson.pieces[0][0], workers=3, max_steps=MOST_STEPS), Workflow)


@pytest.mark.parametrize(
    ("text", "chars", "shown"),
    [
        ("short", 20, "short"),
        ("a" * 20 + "b" * 20, 30, "a" * 20 + " ... " + "b" * 10),
        ("a" * 99, None, "a" * 99),
    ],
)
def test_a_long_question_loses_its_middle(text: str, chars: int | None, shown: str) -> None:
    assert shortened(text, chars) == shown
    settings = PromptSettings(style="brief", question_chars=chars)
    (message,) = build_prompt(Situation(Question(text=text), PROFILES), settings)
    assert message.content.startswith(f"Question: {shown}\nModels:\n0: ada")


def test_a_small_warm_start_on_a_recording_leaves_a_policy_that_is_asked_in_its_way(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    tasks, pool = write_sources(make_recording, tmp_path)
    settings = WarmStartSettings(
        tasks=tasks, pool=pool, question_chars=60, stages=(WarmStartStage(steps=60),), batch=16,
        vocabulary=600, vocabulary_lessons=100, hidden=32, layers=1, heads=2, kv_heads=1, inner=64,
    )  # fmt: skip
    rows = []
    reports = run_warmstart(settings, tmp_path / "run", show=rows.append, gate_cases=6)
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert reports.keys() == {"form"}
    checkpoint = Checkpoint.read(tmp_path / "run" / "policy")
    assert checkpoint.prompt == PromptSettings(style="brief", examples=0, question_chars=60)


def test_a_recording_that_is_not_there_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        RecordedMaterial(tmp_path / "none.parquet", "embedded", 100)
