"""Writes a problem of the world as a question, in one of many wordings.

`nested` wordings put one relation into the other ("the birthplace of the founder of Rado Mill"); `in order` wordings
say one after the other ("Take Rado Mill. Find its founder. Then find the birthplace of that person"). Clauses ("the
person who founded Rado Mill") are kept for tests. Lessons of a Conductor have wordings of their own.
"""

from __future__ import annotations

from random import Random

from podium_lab.world.problem import Path, Problem
from podium_lab.world.schema import ARTICLE, RELATIONS, Relation

_ASKING = ("What is {x}?", "Name {x}.", "Tell me {x}.", "I want to know {x}.")
_LESSON_ASKING = (
    "Which is {x}?",
    "Look up {x}.",
    "Say what {x} is.",
    "Do you know {x}?",
    "I would like to hear {x}.",
    "Write down {x}.",
    "Somebody asks for {x}.",
    "Here is what I need: {x}.",
)
_KEPT_ASKING = ("Can you find out {x}?", "Please give {x}.")
_HINTS = (
    "Somebody told me this, but I doubt it: {hint}",
    "An old note says: {hint} The note is not reliable.",
    "A friend says: {hint} My friend is often wrong.",
)


def named(thing: str, field: str) -> str:
    """A thing's name in a sentence, with its article."""
    return f"the {thing}" if field in ARTICLE else thing


def fact_sentence(relation: Relation, thing: str, value: str) -> str:
    """The fact as a sentence."""
    text = relation.tell.format(x=thing, y=value)
    return text[0].upper() + text[1:]


def phrase(relation: Relation, subject: str, rng: Random, *, held_out: bool = False) -> str:
    """The value as words: "the founder of Rado Mill".

    Args:
        subject: the words for the thing, such as "the Grey Heron".
        held_out: use the wording that is kept for tests.
    """
    if held_out:
        return relation.clause.replace("the {x}", "{x}").format(x=subject)
    possessive = rng.random() < 0.3 and " of " not in subject and len(subject) < 30
    return f"{subject}'s {relation.noun}" if possessive else f"the {relation.noun} of {subject}"


def path_phrase(path: Path, rng: Random, *, held_out: bool = False) -> str:
    """The value of a path as words, one relation nested in the other."""
    words = named(path.thing, RELATIONS[path.relations[0]].field)
    for name in path.relations:
        words = phrase(RELATIONS[name], words, rng, held_out=held_out)
    return words


def word_question(problem: Problem, rng: Random, *, held_out: bool = False) -> str:
    """The question.

    Args:
        rng: chooses among the wordings.
        held_out: use wordings that are kept for tests.
    """
    question = _question(problem, rng, held_out=held_out)
    if problem.hint is None:
        return question
    relation, thing, value = problem.hint
    hint = rng.choice(_HINTS).format(hint=fact_sentence(RELATIONS[relation], thing, value))
    return f"{hint} {question}"


def lesson_question(problem: Problem, rng: Random) -> str:
    """The question, half of those with one path in a wording that no task has, so that a reader learns to go by what
    matters."""
    (path, *others) = problem.paths
    if others or problem.hint is not None or rng.random() < 0.5:
        return word_question(problem, rng)
    if rng.random() < 0.5:
        return rng.choice(_LESSON_ASKING).format(x=path_phrase(path, rng))
    return _told_in_order(path)


def _told_in_order(path: Path) -> str:
    """ "A certain person founded Rado Mill. Where was that person born?" """
    words, parts = named(path.thing, RELATIONS[path.relations[0]].field), []
    for name in path.relations[:-1]:
        relation = RELATIONS[name]
        text = relation.tell.replace("the {", "{").replace("The {", "{")
        text = text.format(x=words, y=f"a certain {relation.gives}")
        parts.append(text[0].upper() + text[1:])
        words = f"that {relation.gives}"
    return " ".join((*parts, path.last.ask.replace("the {x}", "{x}").format(x=words)))


def _question(problem: Problem, rng: Random, *, held_out: bool) -> str:
    first = problem.paths[0]
    match problem.join:
        case "none":
            return _asked(first, rng, held_out=held_out)
        case "pair":
            both = " and ".join(path_phrase(path, rng, held_out=held_out) for path in problem.paths)
            return f"Name both of these, in this order: {both}."
        case "earlier" | "larger":
            things = " or ".join(_subject(path, rng, held_out=held_out) for path in problem.paths)
            which = "has the earlier" if problem.join == "earlier" else "has the larger"
            return f"Which one {which} {first.last.noun}: {things}?"
        case "sum":
            return f"How much is {_joined_paths(problem, rng, held_out=held_out)} together?"
        case "difference":
            between = _joined_paths(problem, rng, held_out=held_out)
            return f"How far apart are {between}?"
        case "count":
            things = ", ".join(_subject(path, rng, held_out=held_out) for path in problem.paths)
            return f"How many of these have the {first.last.noun} {problem.counted}: {things}?"


def _joined_paths(problem: Problem, rng: Random, *, held_out: bool) -> str:
    return " and ".join(path_phrase(path, rng, held_out=held_out) for path in problem.paths)


def _subject(path: Path, rng: Random, *, held_out: bool) -> str:
    if len(path.relations) > 1:
        return path_phrase(Path(path.thing, path.relations[:-1]), rng, held_out=held_out)
    return named(path.thing, path.last.field)


def _asked(path: Path, rng: Random, *, held_out: bool) -> str:
    if not held_out and len(path.relations) > 1 and rng.random() < 0.3:
        return _in_order(path, rng)
    before = Path(path.thing, path.relations[:-1])
    if not held_out and rng.random() < 0.4:
        subject = path_phrase(before, rng) if before.relations else path.thing
        ask = path.last.ask.replace("the {x}", "{x}") if before.relations else path.last.ask
        return ask.format(x=subject)
    asking = rng.choice(_KEPT_ASKING if held_out else _ASKING)
    return asking.format(x=path_phrase(path, rng, held_out=held_out))


def _in_order(path: Path, rng: Random) -> str:
    start = named(path.thing, RELATIONS[path.relations[0]].field)
    parts = [f"Take {start}.", f"Find its {RELATIONS[path.relations[0]].noun}."]
    field = RELATIONS[path.relations[0]].gives
    for name in path.relations[1:]:
        then = rng.choice(("Then find", "Now find", "Next, find"))
        parts.append(f"{then} the {RELATIONS[name].noun} of that {field}.")
        field = RELATIONS[name].gives
    return " ".join(parts)
