"""The task set `world`: right answers, disjoint splits, and what is kept for the test split."""

import asyncio
import re
from random import Random

import pytest

from podium.tasks import open_tasks
from podium_lab.world import FIELDS, RELATIONS, Path, Problem, fact_sentence, relations_of, world
from podium_lab.world.tasks import WorldTasks, draw_problem, kept_for_test, split_of
from podium_lab.world.wording import word_question

FACTS = world()
FIELD_OF = {thing: field for field, things in FACTS.things.items() for thing in things}


def test_every_thing_has_one_value_a_relation_and_no_name_two_meanings():
    names = [thing for field in FIELDS for thing in FACTS.things[field]]
    assert len(names) == len(set(names)) == 8 * 150
    assert sum(1 for _ in FACTS.facts()) == sum(150 for _ in RELATIONS.values())
    for relation, thing, value in FACTS.facts():
        assert value != thing
        if relation.gives in FIELDS:
            assert FIELD_OF[value] == relation.gives
    assert all(len(relations_of(field, *FIELDS)) >= 1 for field in FIELDS)


def test_a_seed_decides_the_world():
    assert world.__wrapped__(0) == FACTS
    assert world.__wrapped__(1).values["firm.founder"] != FACTS.values["firm.founder"]


def looked_up(text):
    """A second reading: the answer of a question in order, found by the words of the question alone."""
    start, first = re.search(r"Take (?:the )?(.+?)\. Find its (.+?)\.", text).groups()
    value, field = start, FIELD_OF[start]
    for noun in [first, *re.findall(r"find the ([a-z ]+?) of that", text)]:
        (relation,) = [r for r in relations_of(field) if r.noun == noun]
        value, field = FACTS.value(relation.name, value), relation.gives
    return value


def test_the_answer_follows_from_the_words_of_the_question():
    asked = [task for task in WorldTasks("train", 400) if "Take " in task.question.text]
    assert len(asked) > 20
    for task in asked:
        assert looked_up(task.question.text) == task.gold


@pytest.mark.parametrize(
    ("join", "last", "answer"),
    [
        ("earlier", "ship.launch year", lambda a, b, x, y: x if a < b else y),
        ("larger", "ship.crew", lambda a, b, x, y: x if a > b else y),
        ("sum", "ship.crew", lambda a, b, x, y: str(a + b)),
        ("difference", "ship.launch year", lambda a, b, x, y: str(abs(a - b))),
        ("pair", "ship.crew", lambda a, b, x, y: f"{a} and {b}"),
    ],
)
def test_a_join_is_computed_from_the_values_of_its_paths(join, last, answer):
    x, y = FACTS.things["ship"][:2]
    problem = Problem((Path(x, (last,)), Path(y, (last,))), join)
    a, b = (int(FACTS.value(last, ship)) for ship in (x, y))
    assert problem.answer(FACTS) == answer(a, b, x, y)
    assert problem.hops == (2 if join == "pair" else 3)


def test_things_with_a_value_are_counted():
    ships = FACTS.things["ship"][:5]
    cargo = FACTS.value("ship.cargo", ships[0])
    problem = Problem(tuple(Path(ship, ("ship.cargo",)) for ship in ships), "count", counted=cargo)
    assert problem.answer(FACTS) == str(sum(FACTS.value("ship.cargo", ship) == cargo for ship in ships))


def test_splits_share_no_problem_and_test_keeps_its_own_compositions():
    def drawn(split):
        return [task.question.text for task in WorldTasks(split, 600)]

    train, validation, test = map(drawn, ("train", "validation", "test"))
    assert not set(train) & set(test)
    assert not set(train) & set(validation)
    clauses = [r.clause.split("{x}")[0] for r in RELATIONS.values() if len(r.clause.split("{x}")[0]) > 20]
    assert not any(clause in text for clause in clauses for text in (*train, *validation))
    assert any(clause in text for clause in clauses for text in test)
    tasks = list(WorldTasks("test", 300))
    assert {task.facts["held_out"] for task in tasks} == {0, 1}
    assert not any(task.facts["held_out"] for task in WorldTasks("train", 300))


def test_a_problem_without_its_words_decides_the_split():
    rng = Random(5)
    for hops in range(1, 7):
        problem = draw_problem(rng, hops, FACTS)
        assert problem.hops == hops
        hinted = Problem(problem.paths, problem.join, problem.counted, hint=("firm.founder", "A", "B"))
        assert split_of(hinted) == split_of(problem)
        swapped = Problem(problem.paths[::-1], problem.join, problem.counted)
        if problem.join not in ("none", "pair"):
            assert swapped.key == problem.key
        if any(map(kept_for_test, problem.compositions)):
            assert split_of(problem) == "test"


def test_a_hint_is_wrong_and_stands_in_the_question():
    hinted = [task for task in WorldTasks("train", 300) if task.facts["hint"]]
    assert 10 < len(hinted) < 60
    path = Path(FACTS.things["firm"][0], ("firm.founder",))
    hint = ("firm.founder", path.thing, "Nobody")
    assert "Nobody founded" in word_question(Problem((path,), hint=hint), Random(1))
    assert fact_sentence(RELATIONS["ship.cargo"], "Grey Heron", "tea") == "The Grey Heron carries tea."


def test_the_set_opens_by_its_name_and_grades_an_answer():
    task = open_tasks("world", "validation", size=3)[2]
    assert task.id == "world/validation/0/2"
    assert asyncio.run(task.grade(f"Answer: {task.gold}")).correct
    assert not asyncio.run(task.grade("Answer: Nobody")).correct
