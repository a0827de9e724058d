"""How rows become tasks: what is refused by its place, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from podium.errors import ConfigError
from podium.files.tables import Row
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.text_graders import Exact
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import Sample, read_tasks, task_key
from podium.tasks.sets.prompts import (
    BOXED,
    CHOICE,
    CODE,
    FINAL_NUMBER,
    PROGRAM,
    content_id,
    strip_prompt,
)
from podium.tasks.task import Task
from podium.types import Question

GOOD = Row("f.jsonl, line 1", {"q": "What is 2 + 2?", "a": "4", "id": "1"})


def record_to_sample(values: Mapping[str, Any]) -> Sample | None:
    if values.get("unwanted"):
        return None
    if values["a"] == "?":
        raise ValueError("its answer is a mark")
    return Sample(
        values["q"], values["a"], values["id"], {"year": values["years"][0]} if "years" in values else {}
    )


BAD = [
    (Row("f.jsonl, line 2", error="it is not JSON: Expecting value (at character 7)"), "it is not JSON"),
    (Row("f.jsonl, line 2", {"q": "New?", "id": "2"}), "it has no column a"),
    (Row("f.jsonl, line 2", {"q": "New?", "a": "?", "id": "2"}), "its answer is a mark"),
    (Row("f.jsonl, line 2", {"q": " \n", "a": "4", "id": "2"}), "the question is empty"),
    (Row("f.jsonl, line 2", {"q": "New?", "a": " ", "id": "2"}), "the gold answer "),
    (Row("f.jsonl, line 2", {"q": "New?", "a": "four", "id": "2"}), "the gold answer "),
    (Row("f.jsonl, line 2", {"q": "New?", "a": "4", "id": "1"}), "the id of 'set/1' came before"),
    (Row("f.jsonl, line 2", GOOD.values), "the same question came before"),
    (
        Row("f.jsonl, line 2", {"q": "New?", "a": "4", "id": "2", "years": []}),
        "one of its columns is not what it",
    ),
    (
        Row("f.jsonl, line 2", {"q": "New?", "a": "4", "id": "2", "years": None}),
        "one of its columns is not what it",
    ),
]


@pytest.mark.parametrize(("row", "error"), BAD)
def test_a_bad_row_is_refused_by_its_place_with_the_way_out(row: Row, error: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_tasks([GOOD, row], record_to_sample, Numeric(), name="set")
    assert str(refused.value).startswith(f"f.jsonl, line 2: {error}")
    assert str(refused.value).endswith('; fix the row, or set on_bad_row = "skip".')


def test_bad_rows_may_be_skipped_and_are_counted_by_their_reason() -> None:
    bad = [row for row, _ in BAD]
    more = [Row("f.jsonl, line 9", {"q": "New?", "a": word, "id": "9"}) for word in ("five", "six", "seven")]
    after = Row("f.jsonl, line 10", {"q": "Last?", "a": "1", "id": "10"})
    reading = read_tasks(
        [GOOD, *bad, *more, after], record_to_sample, Numeric(), name="set", on_bad_row="skip"
    )
    assert [task.id for task in reading.tasks] == ["set/1", "set/10"]
    assert sum(reading.skipped.values()) == len(bad) + len(more)
    assert reading.skipped["the gold answer … is no number"] == 5
    assert reading.skipped["the id of … came before"] == 1


def test_rows_that_are_not_wanted_are_not_counted() -> None:
    reading = read_tasks([GOOD, Row("x", {"unwanted": True})], record_to_sample, Numeric(), name="set")
    assert (len(reading.tasks), reading.skipped) == (1, {})


def test_a_task_is_graded_by_the_grader_of_its_set() -> None:
    (task,) = read_tasks([GOOD], record_to_sample, Numeric(absolute=0.5), name="set").tasks
    assert (task.id, task.gold, task.question.text) == ("set/1", "4", "What is 2 + 2?")
    assert asyncio.run(task.grade("Answer: 4.4")).correct
    assert not asyncio.run(task.grade("Answer: 5")).correct


# --- questions without their prompts -------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [BOXED, CODE, FINAL_NUMBER, PROGRAM])
def test_the_prompts_of_our_sets_do_not_tell_questions_apart(prompt: str) -> None:
    put = prompt.format(question="What is $x$?")
    assert strip_prompt(put) == "What is $x$?"
    row = Row("x", {"q": put, "a": "1", "id": "1"})
    (task,) = read_tasks([row], record_to_sample, Exact(), name="set").tasks
    assert task_key(task) == task_key(Task("1", Question(text=put), "1", Exact())) == "what is x"


def test_question_key_ignores_option_letters() -> None:
    assert (
        question_key(strip_prompt(CHOICE.format(question="Which?", options="A. one\nB. two")))
        == "which one two"
    )
    assert question_key(strip_prompt("Which?\n(A) one\n(B) two")) == "which one two"
    assert strip_prompt("A. Lincoln was\na. b") == "Lincoln was\na. b"


def test_a_set_may_define_the_text_by_which_questions_are_compared() -> None:
    said = Sample("Read this. What is 2 + 2? Now answer.", "4", "1", content="What is 2 + 2?")
    (task,) = read_tasks([GOOD], lambda _: said, Exact(), name="set").tasks
    assert task_key(task) == "what is 2 + 2"


def test_question_without_an_id_gets_an_id_from_its_content() -> None:
    assert content_id("What is 2+2?") == content_id("what is  2 + 2")
    assert content_id("What is 2+2?") != content_id("What is 2-2?")
