"""Reading a text: which operations it asks for, and how they feed one another.

The inverse of `wording`: every phrasing is looked for anywhere in the text, so connecting words do not matter.
Results of earlier hops are meant by "the result", "it", "that", or by the labels A and B of two branches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from podium.operations.catalogue import OPERATIONS
from podium.operations.operation import Operation
from podium.operations.problem import Hop, Problem

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
    """The longest run of fixed words: no match without it."""


@cache
def _phrasings() -> tuple[_Phrasing, ...]:
    found = []
    for operation in OPERATIONS.values():
        for phrasing in operation.phrasings:
            pieces = re.split(r"\{([xyn])\}", phrasing)
            fixed, slots = pieces[::2], tuple(pieces[1::2])
            pattern = re.escape(fixed[0])
            for slot, words in zip(slots, fixed[1:], strict=True):
                pattern += (r"(\d+)" if slot == "n" else _VALUE) + re.escape(words)
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
    """The requests that `text` makes, in the order in which they stand; of overlapping ones the longest."""
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
    """The problem that a question poses; None when it asks for nothing that is known here."""
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
    except (ValueError, KeyError):
        return None
    return problem


def _labels(text: str, found: tuple[Clause, ...]) -> dict[str, int]:
    """Which hop each label stands for: the last clause between the label and the next label or its use."""
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
