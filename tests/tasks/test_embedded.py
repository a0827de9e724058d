"""The embedded task set: always right, for ever the same, splits that never meet."""

from __future__ import annotations

import pytest

from podium.errors import ConfigError
from podium.lab import SKILLS, read_problem
from podium.tasks import open_tasks
from podium.tasks.embedded import EmbeddedTasks, held_out, split_of

SPLITS = ("train", "validation", "test")


def test_one_seed_gives_one_question_for_ever() -> None:
    task = EmbeddedTasks("test", seed=0)[0]
    again = EmbeddedTasks("test", size=3, seed=0)[0]
    assert (task.id, task.question, task.gold) == (again.id, again.question, again.gold)
    assert EmbeddedTasks("test", seed=1)[0].question != task.question


@pytest.mark.parametrize(
    ("split", "question", "answer"),
    [
        ("train", "Reverse the letters of 'paper' and report the outcome.", "repap"),
        (
            "validation",
            "Take these steps in turn: find the date 22 days after 11 December 2001; say which day of its year it is; "
            "total the digits in the result. Report what you end with.",
            "2",
        ),
        (
            "test",
            "Take 6 away from 34. Then express the result yards in feet. Finally name the weekday that comes it days "
            "after Monday. What do you get?",
            "Monday",
        ),
    ],
)
def test_the_first_questions_have_not_changed(split, question: str, answer: str) -> None:
    task = EmbeddedTasks(split)[0]
    assert (task.question.text, task.gold) == (question, answer)


@pytest.mark.parametrize("split", SPLITS)
def test_every_question_reads_back_to_its_answer(split) -> None:
    for task in EmbeddedTasks(split, size=400):
        problem = read_problem(task.question.text)
        assert problem is not None, task.question.text
        assert problem.answer == task.gold
        assert problem.skills == task.facts["skills"]
        assert split_of(problem) == split


def test_splits_are_disjoint_by_content() -> None:
    keys = {}
    for split in SPLITS:
        problems = [read_problem(task.question.text) for task in EmbeddedTasks(split, size=1500)]
        keys[split] = {problem.key for problem in problems if problem}
    assert not keys["train"] & keys["test"]
    assert not keys["train"] & keys["validation"]
    assert not keys["validation"] & keys["test"]


def test_some_compositions_are_met_in_the_test_split_alone() -> None:
    seen = {}
    for split in SPLITS:
        problems = [read_problem(task.question.text) for task in EmbeddedTasks(split, size=800)]
        seen[split] = {pair for problem in problems if problem for pair in problem.compositions}
    assert not any(map(held_out, seen["train"] | seen["validation"]))
    assert sum(map(held_out, seen["test"])) > 20


def test_hops_and_skills_are_spread() -> None:
    tasks = list(EmbeddedTasks("train", size=1000))
    hops = [task.facts["hops"] for task in tasks]
    assert [round(hops.count(h) / 1000, 1) for h in (1, 2, 3, 4)] == [0.3, 0.3, 0.2, 0.2] or min(
        map(hops.count, (1, 2, 3, 4))
    ) > 100
    skills = [skill for task in tasks for skill in task.facts["skills"]]
    assert min(skills.count(skill) for skill in SKILLS) > len(skills) / 20
    assert {task.facts["shape"] for task in tasks} == {"chain", "join"}


async def test_a_question_does_not_contain_its_answer_as_a_label() -> None:
    task = EmbeddedTasks("train")[0]
    assert (await task.grade(f"Answer: {task.gold}")).correct
    assert not (await task.grade("Answer: something else")).correct
    assert not (await task.grade(f"It may be {task.gold}, or not.\nAnswer: unclear")).correct


@pytest.mark.parametrize(
    ("name", "split", "size", "message"),
    [
        ("embeded", "train", 5, "There is no task set 'embeded'; did you mean 'embedded'?"),
        ("embedded", "tests", 5, "There is no split 'tests'; did you mean 'test'?"),
        ("embedded", "test", 0, "A task set of 0 tasks is empty; open at least 1."),
    ],
)
def test_what_cannot_be_opened_says_the_way_out(name: str, split: str, size: int, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        open_tasks(name, split, size=size)
    assert str(error.value) == message


def test_past_the_end_is_an_error() -> None:
    with pytest.raises(IndexError, match="has 3 tasks; there is no task 3"):
        EmbeddedTasks("train", size=3)[3]
