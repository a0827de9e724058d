"""Reads from the text of a subtask what a simulated specialist must do.

It understands plain English, not only fixed phrases: parts that are quoted, reworded or named by number, the next part,
a check, or a comparison. Any other subtask means the whole question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from podium.lab import Problem, clauses, read_problem

Action = Literal["whole", "parts", "next", "check", "compare"]

_CHECK = re.compile(r"\b(check|verif\w*|mend|review|correct|proofread|double-check)\b", re.IGNORECASE)
_COMPARE = re.compile(
    r"\b(compar\w+|vote|choose among|best of|give the best|most common|agree)\b", re.IGNORECASE
)
_NEXT = re.compile(r"\bnext (part|step|hop|operation)\b|\bone more (part|step)\b", re.IGNORECASE)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_PART = re.compile(
    rf"\b(?:part|step|hop)s? (\d)(?: and (\d))?\b|\b({'|'.join(_ORDINALS)}|last|final) (?:part|step|hop)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Intent:
    """What a subtask requests."""

    action: Action
    parts: tuple[int, ...] = ()
    """The positions of the requested hops, ascending; only for the action "parts"."""
    quoted: bool = False
    """Whether the subtask quotes or rewords the parts, instead of naming their numbers."""


@lru_cache(maxsize=65_536)
def read_intent(subtask: str, question: str) -> Intent:
    """The intent of `subtask`, given the question that it belongs to."""
    problem = read_problem(question)
    if _COMPARE.search(subtask):
        return Intent("compare")
    if _CHECK.search(subtask):
        return Intent("check")
    if problem is not None and subtask.strip() != question.strip():
        named = _named(subtask, problem)
        if named:
            return Intent("parts", named, quoted=True)
        numbered = _numbered(subtask, len(problem.hops))
        if numbered:
            return Intent("parts", numbered)
    if _NEXT.search(subtask):
        return Intent("next")
    return Intent("whole")


def _named(subtask: str, problem: Problem) -> tuple[int, ...]:
    """The hops that the subtask quotes, or else requests in other words."""
    folded = subtask.casefold()
    found = {i for i, hop in enumerate(problem.hops) if hop.clause.casefold() in folded}
    if not found:
        for clause in clauses(subtask):
            same = [
                i
                for i, hop in enumerate(problem.hops)
                if hop.operation is clause.operation and hop.number == clause.number and i not in found
            ]
            found.update(same[:1])
    return tuple(sorted(found))


def _numbered(subtask: str, hops: int) -> tuple[int, ...]:
    found = set()
    for one, two, word in _PART.findall(subtask):
        if word:
            found.add(_ORDINALS.get(word.lower(), hops))
        found.update(int(number) for number in (one, two) if number)
    return tuple(sorted(number - 1 for number in found if 1 <= number <= hops))
