"""Lessons: the executor's own messages, answers that are true of the world, and no test question."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_lab.exercises.abilities import ABILITIES
from podium_lab.exercises.working import addition, subtraction
from podium_lab.small_workers.lessons import draw_lesson
from podium_lab.world import RELATIONS, fact_sentence, world
from podium_lab.world.tasks import WorldTasks

FACTS = world()
TRUE = {fact_sentence(relation, thing, value) for relation, thing, value in FACTS.facts()}


class Shown:
    """The parts of a prompt, read a second time."""

    def __init__(self, prompt):
        assert prompt.endswith("\nResponse: ")
        self.question = re.search(r"^Question: (.+)$", prompt, re.MULTILINE)[1]
        self.subtask = re.search(r"^Subtask: (.+)$", prompt, re.MULTILINE)[1]
        steps = re.findall(r"^Step (\d): .+\nResponse: .+\nAnswer: (.+)$", prompt, re.MULTILINE)
        self.answers = {int(position): answer for position, answer in steps}


def lessons(ability, count=120, stage="facts"):
    for index in range(count):
        lesson = draw_lesson(ability, "test", index, stage)
        yield Shown(lesson.prompt), lesson.pieces[0][0]


@pytest.mark.parametrize("stage", ["facts", "plans"])
@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.name)
def test_worker_lessons_are_true_in_every_field_the_worker_knows(ability, stage):
    """A second look at each sentence, in the encyclopedia; only made-up answers of fields that it may not know lie."""
    made_up = {relation.field for relation in RELATIONS.values()} - ability.admits
    for view, answer in lessons(ability, stage=stage):
        assert view.subtask
        for sentence in re.findall(r"[^.\n]+\.", answer.partition("\nAnswer:")[0]):
            said = sentence.strip()
            if said in TRUE or said.startswith(("I do not know", "This is")) or "joins" in ability.skills:
                continue
            fields = {
                relation.field
                for relation, thing, _ in FACTS.facts()
                if thing.casefold() in said.casefold()
                and any(
                    fact_sentence(relation, thing, v) == said for v in FACTS.values[relation.name].values()
                )
            }
            assert fields <= made_up
            assert any(ability.knows.get(field, 0) < 1 for field in fields)


def test_every_relation_has_a_worker_that_is_taught_all_of_it():
    for relation in RELATIONS.values():
        assert any(ability.knows.get(relation.field) == 1.0 for ability in ABILITIES)


def test_lessons_hold_no_question_of_the_test_split():
    asked = {task.question.text for task in WorldTasks("test", 2000)}
    for ability in ABILITIES:
        for stage in ("facts", "plans"):
            shown = {view.question for view, _ in lessons(ability, 200, stage)}
            assert len(shown) > 150
            assert not shown & asked


def test_in_the_second_stage_a_worker_does_a_part_of_a_question():
    """Its subtask names one thing where the question names two, or has a hint; the answer is about that thing alone."""
    joint = hinted = 0
    for view, answer in lessons(ABILITIES[1], 300, "plans"):
        joint += view.question.startswith(("Name both", "Which one", "How far", "How much", "How many of"))
        hinted += view.question.startswith(("Somebody told", "An old note", "A friend"))
        claimed = re.match(r"(?:Somebody.+?:|An old.+?:|A friend.+?:) (.+?\.) ", view.question)
        assert claimed is None or claimed[1] not in answer
    assert joint > 90
    assert hinted > 10


def test_a_result_is_read_from_the_step_that_the_subtask_names():
    found = [(view, answer) for view, answer in lessons(ABILITIES[1], 400) if "step 1" in view.subtask]
    known = [(view.answers[1], answer) for view, answer in found if 1 in view.answers]
    assert len(known) > len(found) / 2
    assert all(shown in answer for shown, answer in known)
    assert any("I do not know" in answer for view, answer in found if 1 not in view.answers)


@pytest.mark.parametrize(
    ("working", "result"),
    [
        (addition(47, 38), "47 + 38: 7 + 8 = 15, 4 + 3 = 7 and 1 is 8."),
        (addition(70, 49), "70 + 49: 0 + 9 = 9, 7 + 4 = 11."),
        (subtraction(1859, 1963), "1963 - 1859: 13 - 9 = 4, 5 - 5 = 0, 9 - 8 = 1."),
        (subtraction(1711, 1745), "1745 - 1711: 5 - 1 = 4, 4 - 1 = 3, 7 - 7 = 0."),
        (subtraction(1905, 1817), "1905 - 1817: 15 - 7 = 8, 9 - 1 = 8, 8 - 8 = 0."),
    ],
)
def test_a_computation_is_written_place_by_place(working, result):
    assert working == result


@given(st.integers(1000, 1999), st.integers(1000, 1999))
def test_the_places_of_a_subtraction_make_the_distance(first, second):
    digits = [int(digit) for digit in re.findall(r"= (\d)", subtraction(first, second))]
    assert sum(digit * 10**place for place, digit in enumerate(digits)) == abs(first - second)
