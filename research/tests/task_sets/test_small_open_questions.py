"""The questions of small-open: four sets of the same weight, no question in two splits, families that are held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

from hub_files import TEXT, TEXTS, WHOLE, Table, lay
from podium.tasks import open_tasks
from podium.tasks.sets.base import task_key
from podium.tasks.task_file import read_task_file
from podium_research.reasoning_gym.task_set import ReasoningGym
from podium_research.task_sets.hub import DATA_VARIABLE

TASKS = Path(__file__).parents[2] / "configs" / "tasks"
SMALL_OPEN, HELD_OUT = TASKS / "small-open.toml", TASKS / "small-open-held-out.toml"


def _lay(folder: Path) -> None:
    """Sets as the hub has them, with a question that stands in two splits of two sets."""
    twice = "Ann has 3 bags of 4 pears. How many pears?"

    def word(number: int) -> str:
        return "".join("abcdefghij"[int(digit)] for digit in str(number))

    solved = [{"question": f"Ben has {n} ducks. How many?", "answer": f"#### {n}"} for n in range(160)]
    gsm8k = {"train": [*solved[:80], {"question": twice, "answer": "#### 12"}], "test": solved[80:]}
    mbpp = {
        split: [
            {
                "task_id": n,
                "prompt": f"Write a function to name {word(n)}.",
                "test_list": ["assert f(1) == 1"],
                "test_imports": [],
            }
            for n in numbers
        ]
        for split, numbers in (
            ("train", range(601, 641)),
            ("validation", range(511, 531)),
            ("test", range(11, 51)),
        )
    }
    options = [f"{n} m/s" for n in range(10)]
    choices = [
        {
            "question_id": n,
            "question": twice if n == 0 else f"How fast is duck {word(n)}?",
            "options": options,
            "answer": "C",
            "answer_index": 2,
            "category": "physics",
            "src": "made",
        }
        for n in range(300)
    ]
    whole: Mapping[str, pa.DataType] = {"question": TEXT, "answer": TEXT}
    lay(
        folder,
        {
            **{
                f"openai/gsm8k/main/{split}-00000-of-00001.parquet": Table(whole, rows)
                for split, rows in gsm8k.items()
            },
            **{
                f"google-research-datasets/mbpp/sanitized/{split}-00000-of-00001.parquet": Table(
                    {"task_id": WHOLE, "prompt": TEXT, "test_list": TEXTS, "test_imports": TEXTS}, rows
                )
                for split, rows in mbpp.items()
            },
            "TIGER-Lab/MMLU-Pro/data/test-00000-of-00001.parquet": Table(
                {
                    **{"question_id": WHOLE, "question": TEXT, "options": TEXTS, "answer": TEXT},
                    **{"answer_index": WHOLE, "category": TEXT, "src": TEXT},
                },
                choices,
            ),
        },
    )


def _fewer(file: Path, folder: Path, size: int) -> str:
    """The task file with so many questions of each generator: to make them takes a while."""
    copy = folder / file.name
    copy.write_text(
        file.read_text().replace('set = "reasoning-gym"', f'set = "reasoning-gym"\nsize = {size}')
    )
    return str(copy)


def test_the_four_sets_weigh_the_same_and_no_question_is_in_two_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lay(tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    file = read_task_file(Path(_fewer(SMALL_OPEN, tmp_path, 2)))
    splits = {split: list(file.open_split(split)) for split in file.splits}
    assert [*splits] == ["train", "validation", "test"]
    for found in splits.values():
        counts = Counter(task.facts["set"] for task in found)
        assert len(counts) == 4
        assert max(counts.values()) - min(counts.values()) <= 1 < min(counts.values())
    keys = {split: {task_key(task) for task in found} for split, found in splits.items()}
    for one, other in combinations(keys, 2):
        assert not keys[one] & keys[other]


def test_held_out_families_are_disjoint_from_the_mixture(tmp_path: Path) -> None:
    seen, held_out = (
        {
            name
            for part in read_task_file(file).part
            if isinstance(part, ReasoningGym)
            for name in part.generators
        }
        for file in (SMALL_OPEN, HELD_OUT)
    )
    assert not seen & held_out
    asked = open_tasks(_fewer(HELD_OUT, tmp_path, 1), "test")
    assert {task.facts["family"] for task in asked} == held_out
