"""A user's own questions, in TOML alone: files of every kind, templates, splits, graders, and what is refused."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ConfigError, UsageError
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.open import ALL_TASKS, open_tasks, splits_of
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import task_key
from podium.tasks.sets.custom import CustomSet
from podium.tasks.task import Task
from podium.tasks.task_file import disjoint_splits, read_task_file

ROWS = [{"problem": f"What is {n} + {n}?", "answer": 2 * n, "topic": "sums", "nr": n} for n in range(1, 101)]
SHARES = {"train": 68, "validation": 13, "test": 19}
"""What 70, 15 and 15 % of `ROWS` come to. It stays: another fold or hash would move questions from split to split."""
TASK_FILE = """
name = "mine"
[[part]]
set = "own"
file = "{file}"
question = "problem"
{more}
"""


def write(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), file)
    elif file.suffix == ".csv":
        with file.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def own(folder: Path, rows: Sequence[Mapping[str, Any]], **settings: Any) -> CustomSet:
    write(folder / "rows.jsonl", rows)
    return CustomSet.model_validate({"file": "rows.jsonl", "question": "problem"} | settings).with_base_dir(
        folder
    )


def every(spec: CustomSet) -> dict[str, list[Task]]:
    return {split: list(reading.tasks) for split, (reading,) in disjoint_splits([spec], spec.splits).items()}


def first(spec: CustomSet) -> Task:
    return next(task for tasks in every(spec).values() for task in tasks)


def opened(folder: Path, more: str = "", file: str = "rows.jsonl", split: str = "train") -> list[Task]:
    path = folder / "mine.toml"
    path.write_text(TASK_FILE.format(file=file, more=more))
    return list(read_task_file(path).open_split(split))


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_ten_lines_of_toml_bring_a_table_of_any_kind(tmp_path: Path, kind: str) -> None:
    write(tmp_path / f"rows.{kind}", ROWS)
    found = {
        split: opened(tmp_path, 'grader = { kind = "numeric" }', f"rows.{kind}", split)
        for split in ("train", "validation", "test")
    }
    assert {split: len(tasks) for split, tasks in found.items()} == SHARES
    golds = {task.question.text: task.gold for tasks in found.values() for task in tasks}
    assert golds == {row["problem"]: str(row["answer"]) for row in ROWS}
    task = found["test"][0]
    assert task.id.startswith("rows/")
    assert asyncio.run(task.grade(f"Answer: {task.gold}.0")).correct
    assert not asyncio.run(task.grade("Answer: -1")).correct


def test_the_same_table_gives_the_same_tasks_in_any_kind_and_order(tmp_path: Path) -> None:
    made = []
    for kind, rows in (("jsonl", ROWS), ("csv", ROWS[::-1]), ("parquet", ROWS[50:] + ROWS[:50])):
        write(tmp_path / f"rows.{kind}", rows)
        made.append(
            [(task.id, task.question.text, task.gold) for task in opened(tmp_path, file=f"rows.{kind}")]
        )
    assert made[0] == made[1] == made[2]


# --- what a row says -----------------------------------------------------------------------------------


def test_a_template_is_filled_in_and_lists_become_lettered_lines(tmp_path: Path) -> None:
    row = {"problem": "Which {x}?", "options": ["no", "yes"], "answer": "B"}
    template = "{problem}\n{options}\nPut it in \\boxed{{}}."
    task = first(own(tmp_path, [row], question=template))
    assert task.question.text == "Which {x}?\n(A) no\n(B) yes\nPut it in \\boxed{}."
    assert task_key(task) == "which { x } no yes"  # Without the prompt, so that other prompts hide nothing.


@pytest.mark.parametrize(
    ("gold", "written"),
    [
        ("x", "x"),
        (3, "3"),
        (3.0, "3"),
        (0.5, "0.5"),
        (True, "true"),
        (["a", 1], '["a", 1]'),
        ({"ä": 1}, '{"ä": 1}'),
        (0, "0"),
    ],
)
def test_gold_answers_of_a_table_are_written_in_plain_form(tmp_path: Path, gold: Any, written: str) -> None:
    assert first(own(tmp_path, [{"problem": "p?", "answer": gold}])).gold == written


@pytest.mark.parametrize(
    ("start", "number", "letter"), [(0, 0, "A"), (0, 3, "D"), (1, 1, "A"), (1, "4", "D")]
)
def test_the_number_of_the_right_option_becomes_its_letter(
    tmp_path: Path, start: int, number: Any, letter: str
) -> None:
    spec = own(tmp_path, [{"problem": "p?", "answer": number}], first_option=start, grader={"kind": "choice"})
    assert first(spec).gold == letter


def test_custom_set_replaces_a_lone_surrogate(tmp_path: Path) -> None:
    # A text that was cut within an emoji: json.dumps writes its first half.
    task = first(own(tmp_path, [{"problem": "What? \ud83d", "answer": "4 \ud83d", "nr": "\udc00"}], id="nr"))
    assert (task.question.text, task.gold, task.id) == ("What? �", "4 �", "rows/�")


def test_custom_set_is_named_after_its_file_by_default() -> None:
    for file, label in (("a/b.jsonl", "b"), ("my.data.csv.gz", "my.data"), ("c", "c")):
        assert CustomSet.model_validate({"file": file}).label == label
    assert CustomSet.model_validate({"file": "b.jsonl", "name": "mine"}).label == "mine"


def test_a_judge_sees_the_question(tmp_path: Path) -> None:
    worker = {"name": "judge", "kind": "scripted", "replies": {"Why is 1 < 2?": "RIGHT"}}
    rows = [{"problem": "Why is 1 < 2?", "answer": "It is."}]
    task = first(own(tmp_path, rows, grader={"kind": "judge", "worker": worker}))
    assert asyncio.run(task.grade("So it is.")).correct


def test_names_and_facts_are_those_of_the_columns(tmp_path: Path) -> None:
    rows = [*ROWS[:1], {"problem": "q?", "answer": 1, "topic": None, "nr": 7.0}]
    spec = own(tmp_path, rows, name="mine", id="nr", family="topic", facts=["nr"])
    facts = {task.id: task.facts for tasks in every(spec).values() for task in tasks}
    assert facts == {"mine/1": {"family": "sums", "nr": "1"}, "mine/7": {"nr": "7"}}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_only_the_rows_that_where_names_are_questions(tmp_path: Path, kind: str) -> None:
    rows = [row | {"easy": row["nr"] < 11, "level": float(row["nr"] % 2)} for row in ROWS]
    write(tmp_path / f"rows.{kind}", rows)
    spec = CustomSet.model_validate(
        {"file": f"rows.{kind}", "question": "problem", "where": {"easy": True, "level": 1}}
    )
    found = every(spec.with_base_dir(tmp_path))
    assert sorted(int(task.gold) for tasks in found.values() for task in tasks) == [2, 6, 10, 14, 18]


# --- splits --------------------------------------------------------------------------------------------


def test_a_column_may_say_the_split_by_any_of_its_usual_names(tmp_path: Path) -> None:
    said = ["train", "val", "Dev", "valid", "TEST", "training", "validation"]
    rows = [row | {"split": split} for row, split in zip(ROWS, said, strict=False)]
    found = every(own(tmp_path, rows, split="split", id="nr"))
    assert {split: [task.id for task in tasks] for split, tasks in found.items()} == {
        "train": ["rows/1", "rows/6"],
        "validation": ["rows/2", "rows/3", "rows/4", "rows/7"],
        "test": ["rows/5"],
    }


def test_skipped_row_does_not_free_its_question_for_another_split(tmp_path: Path) -> None:
    rows = [{"problem": "x?", "answer": 1, "split": "train"}, {"problem": "X", "answer": 2, "split": "test"}]
    found = every(own(tmp_path, rows, split="split", on_bad_row="skip"))
    assert {split: [task.gold for task in tasks] for split, tasks in found.items()} == {
        "train": ["1"],
        "validation": [],
        "test": [],
    }


def test_rows_without_a_split_are_assigned_by_hash(tmp_path: Path) -> None:
    by_hash = every(own(tmp_path, ROWS))
    unsaid = every(
        own(tmp_path, [row | {"split": "" if row["nr"] % 2 else None} for row in ROWS], split="split")
    )
    assert {s: [t.id for t in ts] for s, ts in unsaid.items()} == {
        s: [t.id for t in ts] for s, ts in by_hash.items()
    }


def test_each_split_may_be_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROWS)
    write(tmp_path / "b.csv", ROWS[:3])
    spec = CustomSet.model_validate(
        {"files": {"train": "a.jsonl", "test": "b.csv"}, "question": "problem", "id": "nr"}
    )
    assert (spec.label, spec.splits) == ("a", ("train", "validation", "test"))
    apart = disjoint_splits([spec.with_base_dir(tmp_path)], spec.splits)
    readings = {split: reading for split, (reading,) in apart.items()}
    assert [task.id for task in readings["test"].tasks] == ["a/test/1", "a/test/2", "a/test/3"]
    assert len(readings["train"].tasks) + len(readings["validation"].tasks) == 97
    assert 0 < len(readings["validation"].tasks) < 25
    left_out = Counter(readings["train"].skipped) + Counter(readings["validation"].skipped)
    assert left_out == {"questions that stand in a later split too": 3}
    alone = CustomSet.model_validate({"files": {"test": tmp_path / "b.csv"}, "question": "problem"})
    assert alone.splits == ("test",)


NEAR = st.sampled_from(["the red fox", "2 + 2", "2 - 2", "a b", "ab", "x", "y", "z"])
DRESS = st.sampled_from(["{}", "{}?", " {} ", "“{}”", "{}...", "\n{}\t!"])
ASKED = st.builds(
    lambda text, dress, up: dress.format(text.upper() if up else text), NEAR, DRESS, st.booleans()
)


@given(st.lists(st.tuples(ASKED, st.sampled_from(["train", "dev", "test", ""])), min_size=1, max_size=30))
def test_custom_splits_never_share_a_question_in_any_spelling(tmp_path_factory, drawn) -> None:
    folder = tmp_path_factory.mktemp("own")
    rows = [{"problem": text, "answer": 1, "split": split, "nr": n} for n, (text, split) in enumerate(drawn)]
    for more in ({"split": "split"}, {}):
        found = every(own(folder, rows, id="nr", **more))
        asked = {split: {task_key(task) for task in tasks} for split, tasks in found.items()}
        assert not asked["train"] & (asked["validation"] | asked["test"])
        assert not asked["validation"] & asked["test"]
        assert set().union(*asked.values()) == {question_key(text) for text, _ in drawn}


# --- bad input -----------------------------------------------------------------------------------------

GOOD = '{"problem": "One?", "answer": 1, "nr": 1}\n'


@pytest.mark.parametrize(
    ("line", "more", "error"),
    [
        ('{"problem": "Two?", "answer": null, "nr": 2}', "", "its answer is empty"),
        ('{"problem": "Two?", "answer": " ", "nr": 2}', "", "its answer is empty"),
        ('{"problem": "Two?", "answer": NaN, "nr": 2}', "", "its answer is empty"),
        ('{"problem": "Two?", "nr": 2}', "", "it has no column answer"),
        ('{"problem": "", "answer": 2, "nr": 2}', "", "its problem is empty"),
        ('{"problem": null, "answer": 2, "nr": 2}', "", "its problem is empty"),
        ('{"problem": "Two?", "answer": 2, "nr": 1}', 'id = "nr"', "the id of 'rows/1' came before"),
        ('{"problem": "Two?", "answer": 2, "nr": null}', 'id = "nr"', "its nr is empty"),
        ('{"problem": "one", "answer": 2, "nr": 2}', "", "the same question came before"),
        ('{"problem": "One?", "answer": 1, "nr": 2}', "", "the same question came before"),
        ('{"problem": "Two?", "answer": 2', "", "it is not JSON: Expecting ',' delimiter"),
        ('{"problem": "Two?", "answer": "two"}', '[part.grader]\nkind = "numeric"', "the gold answer 'two'"),
        (
            '{"problem": "Two?", "answer": 2, "nr": "tset"}',
            'split = "nr"',
            "its split 'tset' is none of train, ",
        ),
        (
            '{"problem": "Two?", "answer": 99, "nr": 2}',
            "first_option = 0",
            "its answer '99' is the number of no",
        ),
    ],
)
def test_a_bad_row_is_refused_with_file_and_line_or_skipped_and_reported(
    tmp_path: Path, line: str, more: str, error: str
) -> None:
    first = GOOD.replace('"nr": 1', '"nr": "train"') if "split" in more else GOOD
    (tmp_path / "rows.jsonl").write_text(f"{first}\n{line}\n")
    with pytest.raises(ConfigError) as refused:
        opened(tmp_path, more)
    assert str(refused.value).startswith(f"rows.jsonl, line 3: {error}")
    assert str(refused.value).endswith('; fix the row, or set on_bad_row = "skip".')
    path = tmp_path / "mine.toml"
    path.write_text(TASK_FILE.format(file="rows.jsonl", more=f'on_bad_row = "skip"\n{more}'))
    spec = read_task_file(path).part[0]
    readings = spec.read_splits(spec.splits)
    assert [task.question.text for reading in readings.values() for task in reading.tasks] == ["One?"]
    assert all(list(reading.skipped.values()) == [1] for reading in readings.values())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('gold = "anwser"', "rows.jsonl has no column 'anwser'; did you mean 'answer'?"),
        ('id = "number"', "rows.jsonl has no column 'number'; known: answer, nr, problem."),
        ('facts = ["topci"]', "rows.jsonl has no column 'topci'; known:"),
        ("where = { nrr = 1 }", "rows.jsonl has no column 'nrr'; did you mean 'nr'?"),
        ('glod = "answer"', "mine.toml, line 7: unknown key 'part.0.glod'; did you mean 'gold'?"),
        (
            '[part.grader]\nkind = "numerc"',
            "mine.toml, line 8: part.0.grader.kind is \"numerc\"; did you mean 'numeric'?",
        ),
        ('[part.grader]\nkind = "numeric"\nabsolut = 1', "'part.0.grader.absolut'; did you mean 'absolute'?"),
        (
            'files = { train = "a.csv" }',
            "own data is a file, or files (one for each split); give one of the two.",
        ),
        ('on_bad_row = "skpi"', "part.0.on_bad_row is \"skpi\"; did you mean 'skip'?"),
    ],
)
def test_wrong_custom_set_setting_is_refused_with_a_suggestion(
    tmp_path: Path, more: str, message: str
) -> None:
    (tmp_path / "rows.jsonl").write_text(GOOD)
    with pytest.raises(UsageError) as refused:
        opened(tmp_path, more)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("template", "part"),
    [
        ("{problem", "is no template: expected '}' before end of string; write {{ for a brace"),
        ("{}", "is no template: name a column in each pair of braces, and no more"),
        ("{problem:>3}", "is no template: name a column in each pair of braces, and no more"),
        ("{problem!r}", "is no template: name a column in each pair of braces, and no more"),
    ],
)
def test_malformed_template_is_refused(template: str, part: str) -> None:
    with pytest.raises(ValueError, match="question") as refused:
        CustomSet.model_validate({"file": "rows.jsonl", "question": template})
    assert part in str(refused.value)


def test_template_reads_columns_and_no_python_attributes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no column 'problem\.__class__'"):
        every(own(tmp_path, ROWS, question="{problem.__class__}"))
    odd = [{"a.b": "dotted?", "c[0]": "index?", "answer": 1}]
    assert first(own(tmp_path, odd, question="{a.b} {c[0]}")).question.text == "dotted? index?"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        opened(tmp_path)
    assert str(refused.value) == f"{tmp_path / 'rows.jsonl'}: there is no such file; check the path."


@pytest.mark.parametrize("given", [{"file": "a.csv", "files": {"test": "b.csv"}}, {}])
def test_custom_set_requires_either_file_or_files(given: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match="give one of the two"):
        CustomSet.model_validate(given)


def test_the_split_of_files_is_said_by_their_keys() -> None:
    with pytest.raises(ValueError, match="with files, their keys say it"):
        CustomSet.model_validate({"files": {"test": "b.csv"}, "split": "fold"})


# --- a table alone -------------------------------------------------------------------------------------

QUESTIONS = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(1, 101)]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "json"])
def test_a_table_with_question_and_answer_is_a_task_set(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"mine.{kind}"
    if kind == "json":
        file.write_text(json.dumps(QUESTIONS))
    else:
        write(file, QUESTIONS)
    assert splits_of(str(file)) == ("train", "validation", "test")
    found = {split: open_tasks(str(file), split, size=ALL_TASKS) for split in splits_of(str(file))}
    assert sum(map(len, found.values())) == len(QUESTIONS)
    assert len({task.id for tasks in found.values() for task in tasks}) == len(QUESTIONS)
    assert {tasks.name for tasks in found.values()} == {"mine/train", "mine/validation", "mine/test"}
    assert all(isinstance(task.grader, Numeric) for task in found["train"])


@pytest.mark.parametrize(
    ("golds", "response", "right"),
    [
        pytest.param(["63", "4"], "Therefore 100 - 37 is 63.", True, id="numbers in a sentence"),
        pytest.param(["63", "4"], "Therefore, the result is **\\(63\\)**.", True, id="with marks"),
        pytest.param(["63", "4"], "There are 63 apples.", True, id="with a unit"),
        pytest.param(["63", "4"], "It is 63 or 64.", False, id="two values"),
        pytest.param(["63", "4"], "It is not 63.", False, id="denied"),
        pytest.param(["63", "4"], "I cannot say anything of 63", False, id="mentioned"),
        pytest.param(
            ["63", "4"], "The total is 15 because 63 of them were red.", False, id="another stands first"
        ),
        pytest.param(["63", "4"], "He has 5 left after giving away 63", False, id="behind another"),
        pytest.param(["63", "5 km"], "It is 63.", False, id="a unit in the table"),
        pytest.param(["63", "02139"], "It is 63.", False, id="a leading zero in the table"),
        pytest.param(["63", "Lima"], "Therefore 100 - 37 is 63.", False, id="not all are numbers"),
        pytest.param(["63", "Lima"], "63", True, id="the text itself"),
        pytest.param([63, 4.5], "$63.00", True, id="numbers of JSON"),
    ],
)
async def test_a_table_of_numbers_is_judged_by_number(
    tmp_path: Path, golds: list[object], response: str, right: bool
) -> None:
    file = tmp_path / "mine.jsonl"
    write(
        file,
        [{"question": f"Question {n}?", "answer": gold, "split": "test"} for n, gold in enumerate(golds)],
    )
    task = next(task for task in open_tasks(str(file), "test") if task.gold == "63")
    assert (await task.grade(response)).correct is right


async def test_a_table_says_the_split_and_the_grader_of_each_row(tmp_path: Path) -> None:
    regex = {"kind": "numeric", "absolute": 0.5}
    rows = [
        {"question": "1 + 1?", "answer": "2", "split": "train", "grader": "numeric"},
        {"question": "1 + 2?", "answer": "3", "split": "dev", "grader": json.dumps(regex)},
        {"question": "1 + 3?", "answer": "4", "split": "test", "grader": ""},
    ]
    write(tmp_path / "mine.csv", rows)
    (first,), (second,), (third,) = (
        open_tasks(str(tmp_path / "mine.csv"), split) for split in ("train", "validation", "test")
    )
    assert [(await task.grade("Answer: 2.0")).score for task in (first, second, third)] == [1.0, 0.0, 0.0]
    assert (await second.grade("Answer: 3.4")).correct
    assert (await third.grade("Answer: 4")).correct


def test_rows_that_name_the_same_grader_share_it(tmp_path: Path) -> None:
    rows = [row | {"grader": {"kind": "numeric"}} for row in QUESTIONS]
    write(tmp_path / "mine.jsonl", rows)
    tasks = open_tasks(str(tmp_path / "mine.jsonl"), "train", size=ALL_TASKS)
    assert len({id(task.grader) for task in tasks}) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"problem": "1 + 1?", "answer": "2"}],
            "mine.jsonl has no column 'question'; it has answer, problem. Rename one, or say which it is in a task "
            'file, NAME.toml, with set = "own".',
        ),
        (
            [{"question": "1 + 1?", "answer": "2", "grader": "numerik"}],
            "mine.jsonl, line 1: its grader.kind is \"numerik\"; did you mean 'numeric'; fix the row, or set "
            'on_bad_row = "skip".',
        ),
        (
            [{"question": "1 + 1?", "answer": "2", "grader": "{kind"}],
            "mine.jsonl, line 1: its grader '{kind' is no JSON object; fix the row, or set on_bad_row = \"skip\".",
        ),
        (
            [{"question": "1 + 1?", "answer": "two", "grader": "numeric"}],
            "mine.jsonl, line 1: the gold answer 'two' is no number",
        ),
    ],
)
def test_a_table_that_is_no_task_set_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, str]], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "mine.jsonl", rows)
    with pytest.raises(ConfigError) as error:
        open_tasks("mine.jsonl", "train")
    assert str(error.value).startswith(message)
