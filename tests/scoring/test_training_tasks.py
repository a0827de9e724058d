"""A run trains on the train split alone, and on nothing that it is measured on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from podium.config import build
from podium.errors import ConfigError
from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter
from podium.scoring.settings import ScoringSettings
from podium.scoring.training_tasks import open_training_tasks
from podium.tasks import ALL_TASKS, open_tasks
from podium.tasks.sets.base import LoadedSplit
from podium.tasks.sets.custom import CustomSet

LONG = "With {} crates of oranges a ferry leaves the harbour at noon and sells some on each island that it visits"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lay(name: str, rows: Sequence[tuple[str, str]]) -> None:
    """A table of questions and their splits."""
    lines = [json.dumps({"question": question, "answer": "4", "split": split}) for question, split in rows]
    Path(name).write_text("\n".join(lines))


def opened(warnings: list[str] | None = None, **settings: Any) -> list[str]:
    """The texts of the training questions."""
    tasks = open_training_tasks(
        build(settings, ScoringSettings), (), ([] if warnings is None else warnings).append
    )
    return [task.question.text for task in tasks.values()]


def test_the_train_split_of_a_table_alone_is_trained_on() -> None:
    lay(
        "mine.jsonl", [("2 + 2?", "train"), ("1 + 3?", "train"), ("5 - 1?", "validation"), ("8 / 2?", "test")]
    )
    assert sorted(opened(tasks="mine.jsonl")) == ["1 + 3?", "2 + 2?"]
    assert len(opened(tasks="mine.jsonl", task_limit=1)) == 1


def test_a_question_of_a_held_out_set_is_refused_in_one_sentence() -> None:
    lay("mine.jsonl", [("What is 2 + 2?", "train"), ("1 + 3?", "train"), ("8 / 2?", "test")])
    lay("exam.jsonl", [("what is  2 + 2", "test"), ("1 + 3?", "train")])
    with pytest.raises(ConfigError) as error:
        opened(tasks="mine.jsonl", held_out=["exam.jsonl:test"])
    (where,) = open_tasks("exam.jsonl", "test")
    (task,) = [task for task in open_tasks("mine.jsonl", "train") if "What" in task.question.text]
    assert str(error.value) == (
        f"1 of 2 training questions of mine.jsonl are held-out questions too; {task.id} "
        f'("What is 2 + 2?") is in {where.id} as a whole. Remove them from the train split, remove the set from '
        'held_out, or set on_overlap = "leave_out" to train without them.'
    )
    with pytest.raises(ConfigError, match=r"^2 of 2 training questions"):
        opened(tasks="mine.jsonl", held_out=["exam.jsonl"])


def test_questions_that_are_left_out_are_counted() -> None:
    lay("mine.jsonl", [("What is 2 + 2?", "train"), ("1 + 3?", "train"), ("8 / 2?", "test")])
    lay("exam.jsonl", [("What is 2 + 2?", "test")])
    warnings: list[str] = []
    assert opened(warnings, tasks="mine.jsonl", held_out=["exam.jsonl"], on_overlap="leave_out") == ["1 + 3?"]
    (warning,) = warnings
    assert warning.startswith("1 of 2 training questions of mine.jsonl")


def test_a_question_that_shares_most_words_with_another_split_is_refused() -> None:
    lay(
        "mine.jsonl",
        [(f"{LONG.format(12)}.", "train"), ("1 + 3?", "train"), (f"{LONG.format(15)} in May?", "test")],
    )
    with pytest.raises(ConfigError, match=r"^1 of 2 .* is in mine/.* with \d+% of its n-grams"):
        opened(tasks="mine.jsonl")
    assert opened(tasks="mine.jsonl", on_overlap="leave_out") == ["1 + 3?"]


def test_training_without_remaining_questions_is_refused() -> None:
    lay("mine.jsonl", [("What is 2 + 2?", "train"), ("8 / 2?", "test")])
    lay("exam.jsonl", [("What is 2 + 2?", "test")])
    with pytest.raises(ConfigError, match=r"^1 of 1 "):
        opened(tasks="mine.jsonl", held_out=["exam.jsonl"], on_overlap="leave_out")


def test_questions_that_no_recorded_worker_solved_are_left_out_and_counted() -> None:
    texts = ("2 + 2?", "1 + 3?", "5 - 1?", "8 / 2?")
    lay("mine.jsonl", [(text, "train") for text in (*texts, "9 - 5?")])
    scores = {"2 + 2?": (0.0, 1.0), "1 + 3?": (0.0, 0.5), "5 - 1?": (None,), "8 / 2?": (0.0,)}
    with RecordingWriter() as writer:
        for number, (text, of_text) in enumerate(scores.items()):
            writer.add_question(RecordedQuestion(str(number), text, "4", None, "train"))
            for sample, score in enumerate(of_text):
                writer.add(str(number), RecordedResponse("ada", sample, "4", score=score))
        writer.write(Path("ways.parquet"), name="ways")
    warnings: list[str] = []
    asked = {"tasks": "mine.jsonl", "solved_in": "ways.parquet"}
    # One is solved, one was never graded, one is not in the recording.
    assert sorted(opened(warnings, **asked)) == ["2 + 2?", "5 - 1?", "9 - 5?"]
    assert warnings == [
        "2 of 5 training questions are left out, since no worker in ways.parquet answered them right."
    ]
    assert len(opened(task_limit=3, **asked)) == 3

    lay("mine.jsonl", [("1 + 3?", "train"), ("8 / 2?", "train")])
    with pytest.raises(ConfigError, match=r"^No training question of mine\.jsonl was answered right"):
        opened(**asked)


def test_unknown_held_out_set_is_refused() -> None:
    lay("mine.jsonl", [("2 + 2?", "train"), ("8 / 2?", "test")])
    with pytest.raises(ConfigError, match="There is no task set 'gsm9k'"):
        opened(tasks="mine.jsonl", held_out=["gsm9k:test"])


def test_the_splits_of_a_mixture_share_no_question_even_if_its_parts_do() -> None:
    lay("a.jsonl", [("What is 2 + 2?", "train"), ("1 + 3?", "train"), ("8 / 2?", "test")])
    lay("b.jsonl", [("What is 2 + 2?", "test"), ("9 - 5?", "train")])
    part = '[[part]]\nset = "own"\nfile = "{}.jsonl"\nsplit = "split"\n'
    Path("both.toml").write_text(part.format("a") + part.format("b"))
    assert sorted(opened(tasks="both.toml")) == ["1 + 3?", "9 - 5?"]
    assert len(open_tasks("both.toml", "test", size=ALL_TASKS)) == 2


def test_a_run_reads_each_file_of_a_mixture_once_for_all_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        lay(f"{name}.jsonl", [(f"{name}: 2 + {number}?", "") for number in range(30)])
    Path("both.toml").write_text(
        "".join(
            f'[[part]]\nset = "own"\nfile = "{name}.jsonl"\n[part.grader]\nkind = "exact"\n' for name in "ab"
        )
    )
    alone = [task.question.text for task in open_tasks("both.toml", "train", size=ALL_TASKS)]
    reads: list[str] = []
    once = CustomSet.read_splits

    def noted(part: CustomSet, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        reads.append(part.label)
        return once(part, splits)

    monkeypatch.setattr(CustomSet, "read_splits", noted)
    assert opened(tasks="both.toml") == alone
    assert reads == ["a", "b"]
