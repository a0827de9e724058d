"""Writes a problem as a question, and reads a question back into a problem.

To read, it looks for every phrasing anywhere in the text; the words between do not matter. "the result", "it", "that",
and the labels A and B of two branches mean the results of earlier hops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random

from podium.lab.operations import OPERATIONS, Operation
from podium.lab.problem import Hop, Problem
from podium.lab.values import VALUE_TYPES

REFERENCES = ("the result", "that", "it")
_VALUE = (
    r"(the result|that\b|it\b|'[^']+'|\[[^\]]*\]|\d+ (?-i:[A-Z][a-z]+) \d{4}|\d+"
    r"|(?-i:[AB])\b|yes\b|no\b|(?-i:[A-Z][a-z]+))"
)
_LABEL = re.compile(r"\b(?:let|write) (?-i:([AB])) |\b(?-i:([AB])) is ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """One request found in a text."""

    operation: Operation
    values: tuple[str, ...]
    number: int | None
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class _Phrasing:
    operation: Operation
    slots: tuple[str, ...]
    pattern: re.Pattern[str]
    anchor: str
    """The longest run of fixed words. A text without it cannot match."""


@cache
def _phrasings() -> tuple[_Phrasing, ...]:
    found = []
    for operation in OPERATIONS.values():
        for phrasing in operation.phrasings:
            pieces = re.split(r"\{([xyn])\}", phrasing)
            fixed, slots = pieces[::2], tuple(pieces[1::2])
            pattern = re.escape(fixed[0])
            for slot, words in zip(slots, fixed[1:], strict=True):
                pattern += (r"(\d{1,18})" if slot == "n" else _VALUE) + re.escape(words)
            found.append(
                _Phrasing(
                    operation,
                    slots,
                    re.compile(r"\b" + pattern + r"(?!\w)", re.IGNORECASE),
                    max(fixed, key=len).strip().lower(),
                )
            )
    return tuple(found)


@lru_cache(maxsize=65_536)
def clauses(text: str) -> tuple[Clause, ...]:
    """The requests in `text`, in order; of overlapping ones only the longest."""
    lowered = text.lower()
    found = []
    for phrasing in _phrasings():
        if phrasing.anchor in lowered:
            for match in phrasing.pattern.finditer(text):
                slots = dict(zip(phrasing.slots, match.groups(), strict=True))
                number = slots.pop("n", None)
                found.append(
                    Clause(
                        phrasing.operation,
                        tuple(slots[slot] for slot in ("x", "y") if slot in slots),
                        None if number is None else int(number),
                        match.start(),
                        match.group(),
                    )
                )
    found.sort(key=lambda clause: (-len(clause.text), clause.start))
    kept: list[Clause] = []
    for clause in found:
        end = clause.start + len(clause.text)
        if all(end <= other.start or other.start + len(other.text) <= clause.start for other in kept):
            kept.append(clause)
    return tuple(sorted(kept, key=lambda clause: clause.start))


@lru_cache(maxsize=65_536)
def read_problem(text: str) -> Problem | None:
    """The problem that a question poses; None: it poses none that can be computed here."""
    found = clauses(text)
    if not found:
        return None
    labelled = _labels(text, found)
    hops: list[Hop] = []
    for position, clause in enumerate(found):
        inputs: list[str | int] = []
        for value in clause.values:
            if value.lower() in REFERENCES:
                inputs.append(position - 1)
            elif value in labelled:
                inputs.append(labelled[value])
            else:
                inputs.append(value.strip("'"))
        if any(isinstance(i, int) and not 0 <= i < position for i in inputs):
            return None
        hops.append(Hop(clause.operation, tuple(inputs), clause.number, clause.text))
    problem = Problem(tuple(hops))
    try:
        problem.truths  # noqa: B018 (computed for its ValueError: values outside the domain)
    except ValueError:
        return None
    return problem


def _labels(text: str, found: tuple[Clause, ...]) -> dict[str, int]:
    """The hop of each label: the last clause before the next label, or before the clause that uses labels."""
    marks = [(match.end(), match.group(1) or match.group(2)) for match in _LABEL.finditer(text)]
    labelled: dict[str, int] = {}
    for index, (start, label) in enumerate(marks):
        end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
        for position, clause in enumerate(found):
            if start <= clause.start < end and not any(value in ("A", "B") for value in clause.values):
                labelled[label] = position
            elif clause.start >= start and label in labelled:
                break
    return labelled


_SINGLE = ("{}.", "Please {}.", "What do you get if you {}?", "Your task: {}.", "{} and report the outcome.")
_CHAIN = (
    ("", ". Then ", ". Finally ", ". What do you get?"),
    ("First ", "; next ", "; last, ", ". Give the final result."),
    ("What comes out if you ", ", then ", ", and then ", "?"),
    ("Take these steps in turn: ", "; ", "; ", ". Report what you end with."),
)
"""For each wording, the texts before the first clause, between clauses, before the last clause and after it."""
_BRANCH = (
    "Let {} be what you get if you ",
    "Write {} for what comes out when you ",
    "{} is what you have if you ",
)


def word_clause(operation: Operation, values: Sequence[str], number: int | None, rng: Random) -> str:
    """One request in words. `values` are texts that can stand in a sentence as they are."""
    slots = dict(zip("xy", values, strict=False))
    return rng.choice(operation.phrasings).format(**slots, n=number)


def word_question(problem: Problem, rng: Random) -> str:
    """A question that poses `problem`, in one of many wordings."""
    join = next((i for i, hop in enumerate(problem.hops) if len(hop.sources) == 2), None)
    if join is None:
        worded = [_word_hop(hop, rng) for hop in problem.hops]
        return _sentence(_chain(worded, rng))
    labels = dict(zip(problem.hops[join].sources, "AB", strict=True))
    frame, text, branch = rng.choice(_BRANCH), "", ""
    for position, hop in enumerate(problem.hops[:join]):
        branch += (" and then " if branch else "") + _word_hop(hop, rng)
        if position in labels:
            text += frame.format(labels[position]) + branch + ". "
            branch = ""
    rest = [_word_hop(problem.hops[join], rng, labels)]
    rest += [_word_hop(hop, rng) for hop in problem.hops[join + 1 :]]
    return _sentence(text) + _sentence(_chain(rest, rng))


def _word_hop(hop: Hop, rng: Random, labels: dict[int, str] | None = None) -> str:
    values = []
    for kind, source in zip(hop.operation.takes, hop.inputs, strict=True):
        if isinstance(source, int):
            values.append(labels[source] if labels else rng.choice(REFERENCES))
        else:
            values.append(VALUE_TYPES[kind].literal.format(source))
    return word_clause(hop.operation, values, hop.number, rng)


def _chain(worded: list[str], rng: Random) -> str:
    if len(worded) == 1:
        return rng.choice(_SINGLE).format(worded[0])
    first, between, last, end = rng.choice(_CHAIN)
    return first + between.join(worded[:-1]) + last + worded[-1] + end


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
