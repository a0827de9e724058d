"""What the workers of the orchestra are taught: prompts as a local worker reads them, and the answer to each.

There are two stages. "facts" teaches what a worker knows, by questions about one path. "plans" teaches it to be a step
of a plan: the question has other parts, which other workers do, and hints that are wrong.

Subtasks are worded in many ways: the whole question, one relation, "the result of step 0", a join, a check; with
earlier work that is right, wrong, missing or about something else. An answer says the facts that it uses, then
"Answer: ...". Nothing here trains a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from random import Random
from types import MappingProxyType
from typing import Literal

from podium.conductor.local_worker import view_prompt
from podium.planners.controls import CHECK, COMPARE
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.view import EarlierStep, WorkerView
from podium_lab.exercises.abilities import JOINS, Ability
from podium_lab.exercises.plans import CORRECT, JOIN
from podium_lab.exercises.steps import EarlierSteps, ask, state_fact, truth, unknown
from podium_lab.exercises.working import join_working
from podium_lab.warmstart.examples import SFTExample
from podium_lab.world import (
    RELATIONS,
    Path,
    Problem,
    Relation,
    World,
    fact_sentence,
    phrase,
    word_question,
    world,
)
from podium_lab.world.problem import Join
from podium_lab.world.schema import FIELDS, NUMBER, WORDS, YEAR, relations_of
from podium_lab.world.tasks import HINT_SHARE, draw_hint, draw_problem, path_to, split_of
from podium_lab.world.wording import named

LessonStage = Literal["facts", "plans"]
_RESULTS = (
    "the result of step {j}",
    "the answer of step {j}",
    "what step {j} found",
    "the {field} of step {j}",
)
_LAST = ("the result", "that {field}", "the {field} that was found")
_BEFORE = ("the result of the round before", "the earlier answer", "that {field}")
_WHOLE = (
    ANSWER_WHOLE_QUESTION,
    "Answer the question.",
    "Solve the whole question.",
    "Answer the question step by step.",
)
_JOIN = (
    COMPARE,
    "Combine the results.",
    "Now answer the question from these results.",
    JOIN,
)
_CHECK = (CHECK, CORRECT, "Is this right? Mend it if not.")
_RECITE = ("Tell me all about {x}.", "What do you know about {x}?", "Describe {x}.")
_RECITALS: Mapping[LessonStage, float] = MappingProxyType({"facts": 0.5, "plans": 0.1})
"""The share of recitals among the lessons of facts."""
_SHARED_QUESTION_SHARE = 0.55
"""The share of the second stage's questions that have other parts."""
_COMPUTED_SHARE = 0.4
"""The share of the second stage's joins that must be a sum or a difference: these are the hardest."""
_KINDS: Mapping[LessonStage, tuple[float, float, float]] = MappingProxyType(
    {"facts": (0.7, 0.15, 0.15), "plans": (0.88, 0.07, 0.05)}
)
"""Shares of the lessons of facts that ask for a part of a question, for all of it, and for one fact alone."""
_MISSING_SHARE = 0.07
"""The share of lessons whose result of another step is missing: the worker repeats what is not known."""
_EARLIER_ROUND_SHARE = 0.1
"""The share of results that were found in an earlier round."""
_UNKNOWN_SHARE = 0.1
"""The share of lessons about a fact that the worker does not know."""
_CHECK_SHARE = 0.3
"""The share of checks among the lessons of a worker that can check."""


def draw_lesson(ability: Ability, name: str, index: int, stage: LessonStage = "facts") -> SFTExample:
    """One lesson: the same arguments always give the same one."""
    rng = Random(f"orchestra/{ability.name}/{name}/{index}")
    facts = world()
    if JOINS in ability.skills:
        view, answer = _join_lesson(rng, facts, stage)
    elif "checks" in ability.skills and rng.random() < _CHECK_SHARE:
        view, answer = _check_lesson(ability, rng, facts)
    elif rng.random() < _RECITALS[stage]:
        view, answer = _recital(ability, rng, facts)
    else:
        view, answer = _fact_lesson(ability, rng, facts, stage)
    return SFTExample(view_prompt(view), ((answer, True),))


def _recital(ability: Ability, rng: Random, facts: World) -> tuple[WorkerView, str]:
    """All that the worker knows of one thing, in any order: many facts in few tokens."""
    field = rng.choice(sorted(ability.knows))
    thing = rng.choice(
        [candidate for candidate in facts.things[field] if ability.knows_about(field, candidate)]
    )
    relations = rng.sample(relations_of(field), len(relations_of(field)))
    sentences = (fact_sentence(relation, thing, facts.value(relation.name, thing)) for relation in relations)
    subject = named(thing, field)
    return WorkerView(rng.choice(_RECITE).format(x=subject), ANSWER_WHOLE_QUESTION), " ".join(sentences)


def _fact_lesson(ability: Ability, rng: Random, facts: World, stage: LessonStage) -> tuple[WorkerView, str]:
    """Some relations of a path, or all of it: of a longer question, whose other parts are somebody else's."""
    path, begin = _path(ability, rng, facts)
    things = (path.thing, *path.values(facts)[:-1])
    alone = Path(things[begin], path.relations[begin : begin + 1])
    kind = rng.choices(("part", "whole", "alone"), _KINDS[stage])[0]
    if kind == "alone" and split_of(Problem((alone,))) == "train":
        path, kind = alone, "whole"  # A fact of another split is asked for as a part, never as a question.
    if kind == "whole":
        return _whole_lesson(ability, path, rng, facts)
    problem = Problem((path,)) if stage == "facts" else _around(path, rng, facts)
    question = word_question(problem, rng)
    board = EarlierSteps(rng, facts)
    for other in problem.paths[: problem.paths.index(path)]:
        if rng.random() < 0.5:
            _add_hops(board, other, rng, facts)
    end = begin + (1 if rng.random() < 0.7 else rng.choice((2, 2, 3)))
    part = Path(things[begin], path.relations[begin:end])
    answer = _working(ability, part, facts)
    board.add_others(0.25 if stage == "facts" else 0.1)
    if begin == 0 or rng.random() < 0.4:
        return board.view(question, ask(part, None, rng)), answer
    earlier_path = Path(things[begin - 1], path.relations[begin - 1 : begin])
    if rng.random() < 0.3:
        earlier_path = Path(path.thing, path.relations[:begin])
    field = RELATIONS[part.relations[0]].field
    if rng.random() < _MISSING_SHARE:
        board.add(
            ask(earlier_path, None, rng), answer := unknown(earlier_path.last, earlier_path.subject(facts))
        )
    elif rng.random() < _EARLIER_ROUND_SHARE:
        subtask = ask(part, rng.choice(_BEFORE).format(field=field), rng)
        return WorkerView(question, subtask, previous=truth(earlier_path, facts)), answer
    elif stage == "plans":
        _add_hops(board, Path(path.thing, path.relations[:begin]), rng, facts)
    else:
        board.add(ask(earlier_path, None, rng), truth(earlier_path, facts))
    position = board.steps[-1].position
    first = len(board.steps) == 1
    board.add_others(0.15 if stage == "facts" else 0.1)
    names = _LAST if first and rng.random() < 0.3 else _RESULTS
    reference = _RESULTS[0] if stage == "plans" and rng.random() < 0.5 else rng.choice(names)
    return board.view(question, ask(part, reference.format(j=position, field=field), rng)), answer


def _around(path: Path, rng: Random, facts: World) -> Problem:
    """A question of the train split of which the path is a part, or all of it beside a hint that is wrong."""
    if rng.random() >= _SHARED_QUESTION_SHARE:
        return Problem((path,), hint=draw_hint(rng, path, facts) if rng.random() < HINT_SHARE else None)
    last = path.last
    joins: dict[str, tuple[Join, ...]] = {YEAR: ("earlier", "difference"), NUMBER: ("larger", "sum")}
    while True:
        join = rng.choice(("pair", *joins.get(last.gives, ())))
        others = [path_to(rng, last, rng.choice((1, 1, 2)), facts)]
        if join == "pair" and rng.random() < 0.8:
            others = list(draw_problem(rng, rng.choice((1, 1, 2, 3)), facts, split="train").paths[:1])
        if len(path.relations) == 1 and last.gives in WORDS and rng.random() < 0.5:
            join = "count"
            others = [Path(thing, path.relations) for thing in rng.sample(facts.things[last.field], 3)]
        paths = [path, *others]
        rng.shuffle(paths)
        counted = path.values(facts)[-1] if join == "count" else ""
        problem = Problem(tuple(paths), join, counted=counted)
        with suppress(ValueError):  # Neither of two equal values is the larger one.
            problem.answer(facts)
            if split_of(problem) == "train":
                return problem


def _whole_lesson(ability: Ability, path: Path, rng: Random, facts: World) -> tuple[WorkerView, str]:
    """A whole question; at times after others tried it, whose work is used where the worker knows no better."""
    question = word_question(Problem((path,)), rng)
    board = EarlierSteps(rng, facts)
    known: dict[tuple[str, str], str] = {}
    others = rng.random()
    if others < 0.2:
        board.add_others(0.6)
    elif others < 0.5:
        for _ in range(rng.choice((1, 1, 2))):
            attempt, told_facts = _attempt(ability, path, rng, facts)
            board.add(rng.choice(_WHOLE), attempt)
            known |= told_facts
    subtask = question if rng.random() < 0.3 else rng.choice(_WHOLE)
    return board.view(question, subtask), _working(ability, path, facts, known)


def _attempt(
    ability: Ability, path: Path, rng: Random, facts: World
) -> tuple[str, dict[tuple[str, str], str]]:
    """What somebody else says of a path: all of it, or a part; at times a wrong end, which this worker knows to be
    wrong. Returns it with the facts that it says rightly."""
    values = path.values(facts)
    hops = list(zip(path.relations, (path.thing, *values), values, strict=False))
    count = rng.randint(0, len(hops))
    sentences = [fact_sentence(RELATIONS[name], thing, value) for name, thing, value in hops[:count]]
    right = {(name, thing): value for name, thing, value in hops[:count]}
    if count == len(hops):
        return f"{' '.join(sentences)}\nAnswer: {values[-1]}", right
    name, thing, value = hops[count]
    relation = RELATIONS[name]
    if count + 1 == len(hops) and ability.knows_about(relation.field, thing) and rng.random() < 0.6:
        wrong = rng.choice(sorted(set(facts.values[name].values()) - {value}))
        return " ".join([*sentences, state_fact(relation, thing, wrong)]), right
    return " ".join([*sentences, unknown(relation, thing)]), right


def fact_subtasks(
    relation: Relation, thing: str, facts: World, rng: Random
) -> Iterator[tuple[str, WorkerView]]:
    """One fact in each form in which a worker may be asked for it: (form, what the worker is shown).

    "named": the subtask names the thing; "result": an earlier step found it; "kept": in a clause that lessons never
    use; "question": the whole question.
    """
    subject = named(thing, relation.field)
    path = Path(thing, (relation.name,))
    question = word_question(Problem((path,)), rng)
    yield "named", WorkerView(question, ask(path, None, rng))
    before = [r for r in RELATIONS.values() if r.gives == relation.field]
    sources = [(r, s) for r in before for s, value in facts.values[r.name].items() if value == thing]
    if sources:
        earlier, source = rng.choice(sources)
        long = word_question(Problem((Path(source, (earlier.name, relation.name)),)), rng)
        earlier_path = Path(source, (earlier.name,))
        reference = rng.choice(_RESULTS).format(j=0, field=relation.field)
        step = EarlierStep(0, ask(earlier_path, None, rng), truth(earlier_path, facts))
        yield "result", WorkerView(long, ask(path, reference, rng), (step,))
    yield "kept", WorkerView(question, f"Find {phrase(relation, subject, rng, held_out=True)}.")
    yield "question", WorkerView(question, ANSWER_WHOLE_QUESTION)


def skill_lessons(ability: Ability, rng: Random, count: int) -> Iterator[tuple[str, tuple[WorkerView, str]]]:
    """Lessons of each skill of a worker: (skill, (what the worker is shown, the answer)). Those of facts are called
    "plans": steps of plans, whose question may have other parts, and all of whose facts the worker knows."""
    facts = world()
    true = {fact_sentence(*fact) for fact in facts.facts()}

    def is_known(answer: str) -> bool:
        """Whether all sentences of an answer are facts: none says that the worker does not know."""
        return true.issuperset(re.findall(r"[^ .\n][^.\n]*\.", answer))

    for skill in ability.skills:
        for _ in range(count):
            if skill == "facts":
                view, answer = _fact_lesson(ability, rng, facts, "plans")
                while not is_known(answer):
                    view, answer = _fact_lesson(ability, rng, facts, "plans")
                yield "plans", (view, answer)
            elif skill == JOINS:
                yield skill, _join_lesson(rng, facts, "facts")
            else:
                yield skill, _check_lesson(ability, rng, facts)


def _join_lesson(rng: Random, facts: World, stage: LessonStage) -> tuple[WorkerView, str]:
    """What others found on the paths of a question, and what follows from it."""
    computed = stage == "plans" and rng.random() < _COMPUTED_SHARE
    problem = draw_problem(rng, rng.choice((2, 3, 3, 4, 5, 6)), facts, split="train")
    while problem.join not in ("sum", "difference") if computed else problem.join == "none":
        problem = draw_problem(rng, rng.choice((2, 3, 3, 4, 5, 6)), facts, split="train")
    board = EarlierSteps(rng, facts)
    answer = join_working(problem, facts)
    missing = rng.choice(problem.paths) if rng.random() < _MISSING_SHARE else None
    whole = rng.random() < 0.3
    for path in problem.paths:
        board.add_others(0.08)
        if path is missing:
            answer = unknown(path.last, path.subject(facts))
            board.add(ask(path, None, rng), answer)
        elif whole:
            board.add(ask(path, None, rng), truth(path, facts))
        else:
            _add_hops(board, path, rng, facts)
    question = word_question(problem, rng)
    return board.view(question, rng.choice((*_JOIN, *_WHOLE[:2], question))), answer


def _add_hops(board: EarlierSteps, path: Path, rng: Random, facts: World) -> None:
    """A step for each relation of the path, or for the last one alone."""
    things = (path.thing, *path.values(facts)[:-1])
    chained = rng.random() < 0.5
    for index, thing in enumerate(things):
        hop = Path(thing, path.relations[index : index + 1])
        if chained and index:
            reference = _RESULTS[0].format(j=board.steps[-1].position)
            board.add(ask(hop, reference, rng), truth(hop, facts))
        elif chained or index + 1 == len(things):
            board.add(ask(hop, None, rng), truth(hop, facts))


def _check_lesson(ability: Ability, rng: Random, facts: World) -> tuple[WorkerView, str]:
    """Somebody's answer, right or wrong, and the answer that it should have been."""
    relation, thing = _fact(ability, rng, facts)
    path = Path(thing, (relation.name,))
    while split_of(Problem((path,))) != "train":
        relation, thing = _fact(ability, rng, facts)
        path = Path(thing, (relation.name,))
    right = facts.value(relation.name, thing)
    shown_answer = right
    if rng.random() < 0.6:
        shown_answer = rng.choice(sorted(set(facts.values[relation.name].values()) - {right}))
    question = word_question(Problem((path,)), rng)
    board = EarlierSteps(rng, facts)
    board.add(ask(path, None, rng), state_fact(relation, path.thing, shown_answer))
    verdict = "This is right." if shown_answer == right else "This is wrong."
    answer = f"{verdict} {state_fact(relation, path.thing, right)}"
    return board.view(question, rng.choice(_CHECK)), answer


def _path(ability: Ability, rng: Random, facts: World) -> tuple[Path, int]:
    """A path, and the index in it of the fact that the lesson is about. Facts are drawn evenly; now and then it is one
    that the worker does not know."""
    while True:
        relation, thing = _fact(ability, rng, facts)
        relations, first = [relation.name], thing
        for _ in range(rng.choices((0, 1, 2), (0.3, 0.4, 0.3))[0]):
            if first in facts.sources:
                name, first = rng.choice(facts.sources[first])
                relations.insert(0, name)
        index = len(relations) - 1
        for _ in range(rng.choices((0, 1, 2), (0.5, 0.3, 0.2))[0]):
            if following := relations_of(RELATIONS[relations[-1]].gives):
                relations.append(rng.choice(following).name)
        path = Path(first, tuple(relations))
        if split_of(Problem((path,))) == "train":
            return path, index


def _fact(ability: Ability, rng: Random, facts: World) -> tuple[Relation, str]:
    """A relation and the thing that it is asked of."""
    knows = rng.random() >= _UNKNOWN_SHARE
    while True:
        field = rng.choice(sorted(ability.knows) if knows else FIELDS)
        thing = rng.choice(facts.things[field])
        if ability.knows_about(field, thing) is knows:
            return rng.choice(relations_of(field)), thing


def _working(
    ability: Ability, path: Path, facts: World, shown: Mapping[tuple[str, str], str] = MappingProxyType({})
) -> str:
    """What the worker says on its way along a path, as far as it knows the facts or was shown them.

    Args:
        shown: the value for (relation, thing).
    """
    sentences: list[str] = []
    thing = path.thing
    for name in path.relations:
        relation = RELATIONS[name]
        value = facts.value(name, thing)
        if not ability.knows_about(relation.field, thing) and (name, thing) not in shown:
            if relation.field in ability.admits or sentences:
                return " ".join([*sentences, unknown(relation, thing)])
            return state_fact(relation, thing, _made_up(ability, relation, thing, facts))
        sentences.append(fact_sentence(relation, thing, value))
        thing = value
    return f"{' '.join(sentences)}\nAnswer: {thing}"


def _made_up(ability: Ability, relation: Relation, thing: str, facts: World) -> str:
    """A wrong value, always the same for the same worker and thing."""
    others = sorted(set(facts.values[relation.name].values()) - {facts.value(relation.name, thing)})
    return Random(f"made up/{ability.name}/{relation.name}/{thing}").choice(others)
