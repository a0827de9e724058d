"""A run whose questions or workers changed is refused when it is resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.errors import RunMismatchError
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.tasks.graders.text_graders import Exact, Normalised
from podium.tasks.task import Task
from podium.team.team_file import open_pool
from podium.types import Question

WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
base_url = "{url}"
model = "{model}"
profile = "{profile}"
price = {{ input = {price}, output = 2.0 }}
limits = {{ max_tokens = {most} }}
"""
ADA = {
    "name": "ada",
    "url": "http://127.0.0.1:1/v1",
    "model": "m",
    "profile": "Sums.",
    "price": 1,
    "most": 100,
}
TASKS = [Task(f"t/{n}", Question(text=f"What is {n} + 1?"), f"{n + 1}", Exact()) for n in range(4)]


def data(folder: Path, tasks: list[Task] = TASKS, *workers: dict[str, Any]) -> DataFingerprint:
    file = folder / "pool.toml"
    file.write_text("".join(WORKER.format(**worker) for worker in workers or (ADA,)))
    return DataFingerprint.of(tasks, open_pool(str(file)))


OTHER = replace(TASKS[0], question=Question(text="Other?"))
CHANGES: dict[str, tuple[list[Task], list[dict[str, Any]], str]] = {
    "a question less": (TASKS[:-1], [ADA], "the questions (4 then, 3 now)"),
    "a question more": ([*TASKS, OTHER], [ADA], "the questions (4 then, 5 now)"),
    "another question": ([OTHER, *TASKS[1:]], [ADA], "the questions (4 then"),
    "another gold": ([replace(TASKS[0], gold="7"), *TASKS[1:]], [ADA], "the right answers."),
    "another grader": ([replace(task, grader=Normalised()) for task in TASKS], [ADA], "the graders."),
    "another order": (TASKS[::-1], [ADA], "the order of the questions."),
    "another price": (TASKS, [ADA | {"price": 3}], "worker 'ada' (price)."),
    "another model": (TASKS, [ADA | {"model": "other", "most": 7}], "worker 'ada' (max_tokens, model)."),
    "another profile": (TASKS, [ADA | {"profile": "Words."}], "worker 'ada' (description)."),
    "a worker more": (TASKS, [ADA, ADA | {"name": "bob"}], "the workers (ada then, ada, bob now)."),
    "another worker": (TASKS, [ADA | {"name": "bob"}], "the workers (ada then, bob now)."),
}


@pytest.mark.parametrize(("tasks", "workers", "named"), CHANGES.values(), ids=CHANGES)
def test_changed_questions_and_workers_are_refused_and_named(
    tasks: list[Task], workers: list[dict[str, Any]], named: str, tmp_path: Path
) -> None:
    for _ in range(2):
        RunFolder.open(tmp_path / "run", {"seed": 1}, data=data(tmp_path))
    with pytest.raises(RunMismatchError) as refused:
        RunFolder.open(tmp_path / "run", {"seed": 1}, data=data(tmp_path, tasks, *workers))
    assert f"changed since it began: {named}" in str(refused.value)


def test_a_server_that_moved_to_another_address_goes_on(tmp_path: Path) -> None:
    RunFolder.open(tmp_path / "run", {"seed": 1}, data=data(tmp_path))
    moved = data(tmp_path, TASKS, ADA | {"url": "http://127.0.0.1:2/v1"})
    RunFolder.open(tmp_path / "run", {"seed": 1}, data=moved)


def test_a_refused_start_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    RunFolder.open(tmp_path / "run", {"seed": 1, "minutes": 2}, changeable={"minutes"}, data=data(tmp_path))
    with pytest.raises(RunMismatchError):
        RunFolder.open(
            tmp_path / "run",
            {"seed": 1, "minutes": 3},
            changeable={"minutes"},
            data=data(tmp_path, TASKS[:1]),
        )
    assert RunFolder(tmp_path / "run").configuration["minutes"] == 2
