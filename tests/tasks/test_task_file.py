"""Task files and mixtures: what they hold, in what order, and that nothing stands in two places."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ConfigError
from podium.tasks.sets.base import TaskSetSpec, task_key
from podium.tasks.sets.custom import CustomSet
from podium.tasks.task import TaskList
from podium.tasks.task_file import TaskFile, read_task_file

SPLITS = ("train", "validation", "test")


def part(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], **settings: Any) -> CustomSet:
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps({"answer": 1, "split": "train"} | row) + "\n" for row in rows))
    return CustomSet.model_validate({"name": name, "file": file, "split": "split"} | settings)


def numbered(folder: Path, name: str, questions: int, **settings: Any) -> CustomSet:
    return part(folder, name, [{"question": f"{name} {number}?"} for number in range(questions)], **settings)


def mixture(name: str, parts: Sequence[TaskSetSpec]) -> TaskFile:
    return TaskFile.model_construct(name=name, part=tuple(parts))


def mix(
    name: str, parts: Sequence[TaskSetSpec], split: str, size: int | None = None, seed: int = 0
) -> TaskList:
    return mixture(name, parts).open_split(split, size=size, seed=seed)


def names(tasks: TaskList) -> list[str]:
    return [task.id.partition("/")[0] for task in tasks]


# --- what it holds -------------------------------------------------------------------------------------


def test_mixture_without_weights_interleaves_all_tasks_evenly(tmp_path: Path) -> None:
    parts = [numbered(tmp_path, "a", 30), numbered(tmp_path, "b", 10)]
    tasks = mix("both", parts, "train")
    assert (tasks.name, tasks.warnings) == ("both/train", ())
    assert Counter(names(tasks)) == {"a": 30, "b": 10}
    assert {Counter(names(tasks)[start : start + 4])["a"] for start in range(0, 40, 4)} == {3}
    assert {task.facts["set"] for task in tasks} == {"a", "b"}


def test_equal_weights_balance_to_the_smallest_part(tmp_path: Path) -> None:
    parts = [numbered(tmp_path, name, count, weight=1) for name, count in (("a", 30), ("b", 7), ("c", 12))]
    assert Counter(names(mix("m", parts, "train"))) == {"a": 7, "b": 7, "c": 7}
    assert names(mix("m", parts, "train"))[:6] == ["a", "b", "c"] * 2


def test_a_count_limits_a_part_and_a_part_with_fewer_tasks_is_reported(tmp_path: Path) -> None:
    parts = [numbered(tmp_path, "a", 30, count=12), numbered(tmp_path, "b", 10, count=12)]
    tasks = mix("m", parts, "train")
    assert Counter(names(tasks)) == {"a": 12, "b": 10}
    assert tasks.warnings == ("b: it has 10 tasks, but its count is 12",)


def test_one_part_is_a_mixture_too(tmp_path: Path) -> None:
    tasks = mix("mine", [numbered(tmp_path, "a", 5)], "train", size=3)
    assert (tasks.name, len(tasks)) == ("mine/train", 3)
    assert all("set" not in task.facts for task in tasks)


def test_parts_without_the_split_are_reported(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "only a test?", "answer": 1}\n')
    only = CustomSet(name="only", files={"test": tmp_path / "t.jsonl"})
    parts = [numbered(tmp_path, "a", 3), only]
    tasks = mix("m", parts, "train")
    assert names(tasks) == ["a"] * 3
    assert tasks.warnings == ("only: it has no split 'train'",)
    assert names(mix("m", parts, "test")) == ["only"]
    with pytest.raises(
        ConfigError, match=r"m/validation has no tasks \(a: it has no tasks in this split; only: it has"
    ):
        mix("m", parts, "validation")
    with pytest.raises(
        ConfigError, match=r"m/dev has no tasks \(a: it has no split 'dev'; only: it has no split"
    ):
        mix("m", parts, "dev")
    together = mixture("m", parts).open_splits(("train", "validation", "test"))
    assert {split: list(tasks) for split, tasks in together.items()} == {
        split: list(mix("m", parts, split)) for split in ("train", "test")
    }


def test_skipped_rows_are_reported_with_their_part(tmp_path: Path) -> None:
    rows = [
        {"question": "good?"},
        {"question": "no gold?", "answer": None},
        {"question": ""},
        {"question": " "},
    ]
    tasks = mix("m", [part(tmp_path, "a", rows, on_bad_row="skip"), numbered(tmp_path, "b", 2)], "train")
    assert tasks.warnings == ("a: its answer is empty (1)", "a: its question is empty (2)")


# --- order ---------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 25), st.floats(0.1, 10)), min_size=1, max_size=4),
    st.integers(0, 3),
    st.data(),
)
def test_shares_follow_weights_from_the_first_task_to_the_last(tmp_path_factory, drawn, seed, data) -> None:
    folder = tmp_path_factory.mktemp("mixture")
    parts = [numbered(folder, f"p{n}", count, weight=weight) for n, (count, weight) in enumerate(drawn)]
    tasks = mix("m", parts, "train", seed=seed)
    total = sum(weight for _, weight in drawn)
    for length in range(1, len(tasks) + 1):
        counts = Counter(names(tasks)[:length])
        for n, (_, weight) in enumerate(drawn):
            share = weight / total
            assert abs(counts[f"p{n}"] - share * length) <= 0.5 + share * len(parts) / 2 + 1e-6
    assert len({task.id for task in tasks}) == len(tasks)
    whole = Counter(names(tasks))
    assert any(
        whole[f"p{n}"] == count for n, (count, _) in enumerate(drawn)
    )  # It ends where one has no more.
    size = data.draw(st.integers(1, len(tasks)))
    assert [t.id for t in mix("m", parts, "train", seed=seed, size=size)] == [t.id for t in tasks][:size]


def test_drawn_tasks_depend_only_on_the_seed(tmp_path: Path) -> None:
    parts = [numbered(tmp_path, name, 50, count=5) for name in ("a", "b")]
    drawn = [tuple(task.id for task in mix("m", parts, "train", seed=seed)) for seed in (0, 1, 2, 0)]
    assert drawn[0] == drawn[3]
    assert len(set(drawn)) == 3
    assert all(Counter(one.partition("/")[0] for one in ids) == {"a": 5, "b": 5} for ids in drawn)


def test_tasks_drawn_for_a_seed_never_change(tmp_path: Path) -> None:
    # For ever: runs name their questions by index.
    tasks = mix("m", [numbered(tmp_path, "a", 20), numbered(tmp_path, "b", 20)], "train", size=4, seed=1)
    assert [task.question.text for task in tasks] == ["a 17?", "b 8?", "a 15?", "b 18?"]


# --- overlap -------------------------------------------------------------------------------------------


def test_a_question_of_two_parts_stands_in_the_first_alone(tmp_path: Path) -> None:
    first = part(tmp_path, "a", [{"question": "What is 1 + 1?"}, {"question": "x?"}])
    other = part(tmp_path, "b", [{"question": "what is 1+1"}, {"question": "y?"}])
    tasks = mix("m", [first, other], "train")
    assert sorted(task.question.text for task in tasks) == ["What is 1 + 1?", "x?", "y?"]
    assert tasks.warnings == ("b: questions that an earlier part has too (1)",)


def test_task_id_of_two_parts_is_kept_once(tmp_path: Path) -> None:
    parts = []
    for number, text in enumerate(
        ["(A) no (B) yes?", "(A) yes (B) no?"]
    ):  # As one set with its options in two orders.
        file = tmp_path / f"{number}.jsonl"
        file.write_text(json.dumps({"nr": 1, "question": text, "answer": 1, "split": "train"}))
        parts.append(CustomSet(name="gpqa", file=file, id="nr", split="split"))
    assert [task.id for task in mix("m", parts, "train")] == ["gpqa/1"]


def test_prompt_around_a_question_does_not_hide_a_duplicate(tmp_path: Path) -> None:
    first = part(
        tmp_path, "a", [{"question": "What is 1 + 1?"}], question="{question}\n\nThink, then answer."
    )
    other = part(tmp_path, "b", [{"question": "What is 1 + 1?\n\nPut your final answer within \\boxed{}."}])
    assert len(mix("m", [first, other], "train")) == 1


def test_training_omits_questions_that_another_part_tests_on(tmp_path: Path) -> None:
    first = part(tmp_path, "a", [{"question": "x?"}, {"question": "y?"}, {"question": "z?"}])
    rows = [{"question": "X", "split": "test"}, {"question": "Y", "split": "val"}, {"question": "w?"}]
    other = part(tmp_path, "b", rows)
    assert sorted(task.question.text for task in mix("m", [first, other], "train")) == ["w?", "z?"]
    assert mix("m", [first, other], "train").warnings == ("a: questions that stand in a later split too (2)",)


def test_questions_left_out_for_any_reason_are_reported_in_one_figure(tmp_path: Path) -> None:
    rows = [{"question": "x?"}, {"question": "x", "split": "test"}, {"question": "y?"}, {"question": "z?"}]
    other = part(tmp_path, "b", [{"question": "y", "split": "test"}])
    first = part(tmp_path, "a", [row | {"nr": number} for number, row in enumerate(rows)], id="nr")
    tasks = mix("m", [first, other], "train")
    assert [task.question.text for task in tasks] == ["z?"]
    assert tasks.warnings[0] == "a: questions that stand in a later split too (2)"


NEAR = st.sampled_from(["fox", "2 + 2", "2 - 2", "a b", "ab", *"uvwxyz"])
ASKED = st.builds(str.format, st.sampled_from(["{}", "{}?", " {}", "“{}”", "{}\n"]), NEAR)
ROWS = st.lists(st.tuples(ASKED, st.sampled_from(["train", "dev", "test", ""])), min_size=1, max_size=15)


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_no_question_stands_in_two_splits_or_parts_of_a_mixture(tmp_path_factory, drawn) -> None:
    folder = tmp_path_factory.mktemp("mixture")
    parts = [
        part(folder, f"p{n}", [{"question": text, "split": split} for text, split in rows], on_bad_row="skip")
        for n, rows in enumerate(drawn)
    ]
    asked: dict[str, list[str]] = {}
    for split in SPLITS:
        try:
            asked[split] = [task_key(task) for task in mix("m", parts, split)]
        except ConfigError:
            asked[split] = []
    everything = [text for texts in asked.values() for text in texts]
    assert len(everything) == len(set(everything))


# --- task files ----------------------------------------------------------------------------------------

OWN = '[[part]]\nset = "own"\nfile = "data/a.jsonl"\n'


def written(folder: Path, text: str, overrides: Sequence[str] = ()) -> TaskFile:
    (folder / "mine.toml").write_text(text)
    return read_task_file(folder / "mine.toml", overrides)


def test_a_task_file_has_its_own_name_and_paths_from_its_folder(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, OWN)
    assert (file.name, file.splits) == ("mine", SPLITS)
    assert isinstance(file.part[0], CustomSet)
    assert file.part[0].file == tmp_path / "data" / "a.jsonl"
    assert written(tmp_path, f'name = "other"\n{OWN}').name == "other"
    files = written(
        tmp_path, '[[part]]\nset = "own"\nfiles = { test = "/abs/t.csv", train = "t.csv" }\n'
    ).part[0]
    assert isinstance(files, CustomSet)
    assert files.files == {"test": Path("/abs/t.csv"), "train": tmp_path / "t.csv"}


def test_overrides_reach_into_the_parts(tmp_path: Path) -> None:
    file = written(tmp_path, OWN + "count = 5\n", ["part.0.count=7", "part.0.grader.kind=numeric"])
    assert (file.part[0].count, file.part[0].model_dump()["grader"]["kind"]) == (7, "numeric")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the key 'part' is missing; add it."),
        ("part = []", "part"),
        ('[[part]]\nset = "inspekt"\n', "part.0.set is \"inspekt\"; did you mean 'inspect'?"),
        ('[[part]]\nfile = "a.csv"\n', "part.0 lacks the key 'set'; add it."),
        (OWN + "weigth = 1\n", "unknown key 'part.0.weigth'; did you mean 'weight'?"),
        (OWN + "weight = 0\n", "part.0.weight is 0, but it should be greater than 0."),
        (OWN + "weight = inf\n", "part.0.weight"),
        (
            OWN + "count = 0\n",
            "part.0.count is 0, but it should be greater than or equal to 1.",
        ),
        (
            '[[part]]\nset = "own"\nfile = "b.csv"\nweight = 1\n' + OWN,
            "the part 'a' has no weight but other parts do; give every part a weight, or none.",
        ),
        (
            OWN + '[[part]]\nset = "own"\nfile = "b/a.csv"\n',
            "two parts of own data are called 'a'; give each its own name.",
        ),
        ("naem = 'x'\n" + OWN, "unknown key 'naem'; did you mean 'name'?"),
    ],
)
def test_wrong_task_file_is_refused_with_a_suggestion(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        written(tmp_path, text)
    assert re.match(rf"{re.escape(str(tmp_path / 'mine.toml'))}(, line \d+)?: ", str(refused.value))
    assert message in str(refused.value)


# --- those that ship -----------------------------------------------------------------------------------

SHIPPED = sorted((Path(__file__).parents[2] / "configs" / "tasks").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_task_file_that_ships_can_be_read(path: Path) -> None:
    assert read_task_file(path).splits == SPLITS


def test_the_example_of_own_data_has_tasks_in_every_split() -> None:
    file = read_task_file(next(path for path in SHIPPED if path.stem == "own"))
    tasks = [task for split in SPLITS for task in file.open_split(split)]
    assert len(tasks) == 12
    assert {task.facts["family"] for task in tasks} == {"tides", "speed", "freight", "signals"}
