"""The published sets by name, as task files and command lines call them, and the mixture of the Conductor's paper."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from podium.config import build
from podium.tasks.sets.custom import CustomSet
from podium.tasks.sets.registry import installed_set_names, named_set
from podium.tasks.task_file import TaskFile, read_task_file

PAPER = Path(__file__).parents[2] / "configs" / "tasks" / "paper.toml"


def test_every_published_set_is_there() -> None:
    assert set(installed_set_names()) >= {
        *("aime", "bigcodebench", "gpqa", "gsm8k", "humaneval", "livecodebench", "math", "math-500", "mbpp"),
        *("mmlu", "mmlu-pro", "reasoning-gym", "rlpr"),
    }


@pytest.mark.parametrize("name", installed_set_names())
def test_a_named_set_needs_no_settings(name: str) -> None:
    (part,) = build({"name": "mine", "part": [{"set": name}]}, TaskFile).part
    named = named_set(name)
    assert named is not None
    assert part == named()
    assert part.set == name
    assert part.splits


def test_names_in_a_mixture_tell_sets_and_their_settings_apart() -> None:
    parts = [
        {"set": "aime", "year": 2024},
        {"set": "aime"},
        {"set": "bigcodebench"},
        {"set": "bigcodebench", "hard": False},
        {"set": "gpqa"},
        {"set": "gpqa", "subset": "main"},
        {"set": "humaneval"},
        {"set": "humaneval", "plus": True},
        {"set": "livecodebench", "release": "release_v5"},
        {"set": "livecodebench"},
        {"set": "mbpp"},
        {"set": "mbpp", "form": "plus"},
    ]
    labels = [part.label for part in build({"name": "mine", "part": parts}, TaskFile).part]
    assert len(set(labels)) == len(parts)


def test_the_paper_s_mixture_is_240_questions_of_each_of_four_sets(tmp_path: Path) -> None:
    file = read_task_file(PAPER)
    assert [part.set for part in file.part] == ["math", "mmlu", "rlpr", "livecodebench"]
    stand_ins = []
    for part, questions in zip(file.part, (400, 1000, 700, 250), strict=True):
        rows = "".join(f"{part.set} {number},{number},train\n" for number in range(questions))
        (table := tmp_path / f"{part.set}.csv").write_text("question,answer,split\n" + rows)
        stand_ins.append(CustomSet(file=table, split="split", weight=part.weight, count=part.count))
    mixed = file.model_copy(update={"part": tuple(stand_ins)}).open_split("train")
    assert Counter(task.facts["set"] for task in mixed) == {part.set: 240 for part in file.part}
