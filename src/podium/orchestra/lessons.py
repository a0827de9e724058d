"""What the workers of the orchestra are taught: prompts as a local worker reads them, and the answer to each.

Subtasks are worded in many ways: the whole question, one relation, "the result of step 0", a join, a check; with
earlier work that is right, wrong, missing or about something else. An answer says the facts that it uses, then
"Answer: ...". Nothing here trains a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from podium.baselines.phrases import CHECK, COMPARE, WHOLE
from podium.conductor.local_worker import prompt_of
from podium.lab.world import RELATIONS, Path, Problem, Relation, World, phrase, told, word_question, world
from podium.lab.world.schema import FIELDS, relations_of
from podium.lab.world.wording import named
from podium.orchestra.abilities import Ability
from podium.orchestra.working import join_working
from podium.tasks.world import HOP_SHARES, draw_problem, split_of
from podium.warmstart.embedded_examples import SFTExample
from podium.workers.view import EarlierStep, View

_FIND = ("Find {x}.", "Look up {x}.", "What is {x}?", "Give {x}.", "Say {x}.", "Name {x}.")
_RESULTS = (
    "the result of step {j}",
    "the answer of step {j}",
    "what step {j} found",
    "the {field} of step {j}",
)
_LAST = ("the result", "that {field}", "the {field} that was found")
_WHOLE = (WHOLE, "Answer the question.", "Solve the whole question.", "Answer the question step by step.")
_JOIN = (
    COMPARE,
    "Combine the results.",
    "Now answer the question from these results.",
    "Use the results to answer.",
)
_CHECK = (CHECK, "Check the answer and correct it.", "Is this right? Mend it if not.")
_RECITE = ("Tell me all about {x}.", "What do you know about {x}?", "Describe {x}.")
_RECITALS = 0.5
"""The share of recitals among the lessons of facts."""
UNKNOWN = "I do not know {x}."
"""What a worker says of a fact that it was taught not to know."""


def draw_lesson(ability: Ability, name: str, index: int) -> SFTExample:
    """One lesson: the same ability, name and index always give the same one."""
    rng = Random(f"orchestra/{ability.name}/{name}/{index}")
    facts = world()
    match rng.choice(ability.skills):
        case "facts" if rng.random() < _RECITALS:
            view, answer = _recital(ability, rng, facts)
        case "facts":
            view, answer = _fact_lesson(ability, rng, facts)
        case "joins":
            view, answer = _join_lesson(rng, facts)
        case "checks":
            view, answer = _check_lesson(ability, rng, facts)
    return SFTExample(prompt_of(view), ((answer, True),))


def _recital(ability: Ability, rng: Random, facts: World) -> tuple[View, str]:
    """All that the worker knows of one thing, in any order: many facts in few tokens."""
    field = rng.choice(sorted(ability.knows))
    thing = rng.choice([each for each in facts.things[field] if ability.knows_about(field, each)])
    relations = rng.sample(relations_of(field), len(relations_of(field)))
    said = (told(relation, thing, facts.value(relation.name, thing)) for relation in relations)
    subject = named(thing, field)
    return View(rng.choice(_RECITE).format(x=subject), WHOLE), " ".join(said)


def _fact_lesson(ability: Ability, rng: Random, facts: World) -> tuple[View, str]:
    """One relation of a path, or all of it: of a longer question, whose other parts are somebody else's."""
    path = _path(ability, rng, facts)
    values = path.values(facts)
    things = (path.thing, *values[:-1])
    kind = rng.choices(("one", "result", "whole", "alone"), (0.35, 0.3, 0.2, 0.15))[0]
    place = 0
    if kind == "alone" and split_of(Problem((Path(path.thing, path.relations[:1]),))) == "train":
        path = Path(path.thing, path.relations[:1])
    else:
        kind = "one" if kind == "alone" else kind
        known = [
            p
            for p, name in enumerate(path.relations)
            if ability.knows_about(RELATIONS[name].field, things[p])
        ]
        place = rng.choice(known) if known and rng.random() < 0.9 else rng.randrange(len(path.relations))
    question = word_question(Problem((path,)), facts, rng)
    relation = RELATIONS[path.relations[place]]
    if kind in ("whole", "alone"):
        subtask = question if rng.random() < 0.3 else rng.choice(_WHOLE)
        earlier = _others(rng, facts) if rng.random() < 0.2 else ()
        return View(question, subtask, earlier), _working(ability, path, facts)
    answer = _working(ability, Path(things[place], (relation.name,)), facts)
    if kind == "one" or place == 0:
        asked = _one(relation, named(things[place], relation.field), rng)
        return View(question, asked, _others(rng, facts) if rng.random() < 0.3 else ()), answer
    before = RELATIONS[path.relations[place - 1]]
    asked = _one(before, named(things[place - 1], before.field), rng)
    found = EarlierStep(place - 1, asked, _said(before, things[place - 1], things[place]))
    earlier = (*(_others(rng, facts, before=place - 1) if rng.random() < 0.3 else ()), found)
    reference = rng.choice(_RESULTS if len(earlier) > 1 or rng.random() < 0.5 else _LAST)
    reference = reference.format(j=found.position, field=relation.field)
    return View(question, _one(relation, reference, rng), earlier), answer


def fact_subtasks(relation: Relation, thing: str, facts: World, rng: Random) -> Iterator[tuple[str, View]]:
    """One fact in each form in which a worker may be asked for it: (form, what the worker is shown).

    "named": the subtask names the thing; "result": an earlier step found it; "kept": in a clause that lessons never
    use; "question": the whole question.
    """
    subject = named(thing, relation.field)
    question = word_question(Problem((Path(thing, (relation.name,)),)), facts, rng)
    yield "named", View(question, _one(relation, subject, rng))
    before = [r for r in RELATIONS.values() if r.gives == relation.field]
    sources = [(r, s) for r in before for s, value in facts.values[r.name].items() if value == thing]
    if sources:
        earlier, source = rng.choice(sources)
        long = word_question(Problem((Path(source, (earlier.name, relation.name)),)), facts, rng)
        asked = _one(earlier, named(source, earlier.field), rng)
        reference = rng.choice(_RESULTS).format(j=0, field=relation.field)
        step = EarlierStep(0, asked, _said(earlier, source, thing))
        yield "result", View(long, _one(relation, reference, rng), (step,))
    yield "kept", View(question, f"Find {phrase(relation, subject, rng, kept=True)}.")
    yield "question", View(question, WHOLE)


def _join_lesson(rng: Random, facts: World) -> tuple[View, str]:
    """Two or more results of others, and what follows from them."""
    problem = _problem(rng, rng.choice((2, 3, 3, 4, 5, 6)), facts)
    while problem.join == "none":
        problem = _problem(rng, rng.choice((2, 3, 3, 4, 5, 6)), facts)
    earlier = []
    for position, path in enumerate(problem.paths):
        subject = path.subject(facts)
        asked = _one(path.last, named(subject, path.last.field), rng)
        earlier.append(EarlierStep(position, asked, _said(path.last, subject, path.values(facts)[-1])))
    question = word_question(problem, facts, rng)
    subtask = rng.choice((*_JOIN, *_WHOLE[:2], question))
    return View(question, subtask, tuple(earlier)), join_working(problem, facts)


def _check_lesson(ability: Ability, rng: Random, facts: World) -> tuple[View, str]:
    """Somebody's answer, right or wrong, and the answer that it should have been."""
    path = _path(ability, rng, facts, most=1)
    relation, right = path.last, path.values(facts)[-1]
    shown = right
    if rng.random() < 0.6:
        shown = rng.choice(sorted(set(facts.values[relation.name].values()) - {right}))
    question = word_question(Problem((path,)), facts, rng)
    asked = _one(relation, named(path.thing, relation.field), rng)
    earlier = (EarlierStep(0, asked, _said(relation, path.thing, shown)),)
    verdict = "This is right." if shown == right else "This is wrong."
    return View(question, rng.choice(_CHECK), earlier), f"{verdict} {_said(relation, path.thing, right)}"


def _problem(rng: Random, hops: int, facts: World) -> Problem:
    """A problem of the train split."""
    while True:
        problem = draw_problem(rng, hops, facts)
        if split_of(problem) == "train":
            return problem


def _path(ability: Ability, rng: Random, facts: World, most: int = 6) -> Path:
    """A path of 1 to `most` relations that passes through a field that the worker knows or admits not to know."""
    lengths = range(1, most + 1)
    while True:
        problem = _problem(rng, rng.choices(lengths, HOP_SHARES[:most])[0], facts)
        path = rng.choice(problem.paths)
        if split_of(Problem((path,))) != "train":
            continue
        fields = {RELATIONS[name].field for name in path.relations}
        if fields & set(ability.knows) or (fields & ability.admits and rng.random() < 0.15):
            return path


def _working(ability: Ability, path: Path, facts: World) -> str:
    """What the worker says on its way along a path, as far as it knows the facts."""
    said: list[str] = []
    thing = path.thing
    for name in path.relations:
        relation = RELATIONS[name]
        value = facts.value(name, thing)
        if not ability.knows_about(relation.field, thing):
            if relation.field in ability.admits or said:
                return " ".join(
                    [*said, UNKNOWN.format(x=phrase(relation, named(thing, relation.field), Random(0)))]
                )
            return _said(relation, thing, _made_up(ability, relation, thing, facts))
        said.append(told(relation, thing, value))
        thing = value
    return f"{' '.join(said)}\nAnswer: {thing}"


def _made_up(ability: Ability, relation: Relation, thing: str, facts: World) -> str:
    """A wrong value, always the same for the same worker and thing."""
    others = sorted(set(facts.values[relation.name].values()) - {facts.value(relation.name, thing)})
    return Random(f"made up/{ability.name}/{relation.name}/{thing}").choice(others)


def _one(relation: Relation, subject: str, rng: Random) -> str:
    """A subtask that asks for one relation of a subject."""
    if rng.random() < 0.4:
        return relation.ask.replace("the {x}", "{x}").format(x=subject)
    return rng.choice(_FIND).format(x=phrase(relation, subject, rng))


def _said(relation: Relation, thing: str, value: str) -> str:
    return f"{told(relation, thing, value)}\nAnswer: {value}"


def _others(rng: Random, facts: World, before: int = 1) -> tuple[EarlierStep, ...]:
    """Work of others that has nothing to do with the subtask."""
    steps: list[EarlierStep] = []
    for position in range(max(0, before)):
        field = rng.choice(FIELDS)
        relation, thing = rng.choice(relations_of(field)), rng.choice(facts.things[field])
        value = facts.value(relation.name, thing)
        steps.append(
            EarlierStep(position, _one(relation, named(thing, field), rng), _said(relation, thing, value))
        )
    return tuple(steps)
