"""A guide of small policies: a plan's lists have as many entries as its thought says, and what it says for each.

A small model miscounts entries that bear no number. Then most of its long plans could not be read or had other
workers than it meant, and reinforcement would give them up before they pay. It also forgets what a step was to find.
It is the guide `plan-lists` (`podium.conductor.loaded_model`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]

_STEPS = re.compile(r"steps ([a-z\d, ]*[a-z]\d+)\n")
"""As a thought ends, each step with what it finds and its worker: "steps 0 proposer laws3, 1 birthplace persons0".
Lessons write it so (`podium_lab.exercises.plans`)."""
_WORKER = re.compile(r"[a-z](\d+)")
_FOUND = re.compile(r"\d+ (.+) [a-z]+\d+")
"""What a thought says of one step, with what it finds: "1 birthplace persons0"."""
_FIND = "Find the"
_WORKERS, _SUBTASKS, _ACCESS = "\nmodel_id", "\nsubtasks", "\naccess_list"
_NEXT, _LAST = '", "', '"]'
"""Between two subtasks, and after the last one."""
_NONE: Tokens = np.empty(0, np.int64)


class PlanLists:
    """Which tokens would give one of a plan's three lists a wrong number of entries, a wrong worker or a wrong subtask.

    The list of workers repeats those that the thought names. A subtask that begins with "Find the" goes on with what
    the thought says of its step: "Find the birthplace of ", or for "birthplace founder" "Find the birthplace of the
    founder of ". In the list of subtasks only tokens with a whole mark between subtasks or after them are looked at,
    and not a quote or a bracket alone. A plan that the policy never ends, or whose thought names no worker of the pool,
    may still be invalid.

    Args:
        decode: the text of some tokens.
        vocabulary: the number of tokens that the policy knows.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], vocabulary: int) -> None:
        self._pieces = [decode([token]) for token in range(vocabulary)]
        self._token_of = {piece: token for token, piece in enumerate(self._pieces) if piece}
        self._marks = self._containing(*"[],")
        self._next, self._last = self._containing(_NEXT), self._containing(_LAST)
        self._breaking: dict[tuple[_ListState | bool, int], Tokens] = {}
        """The marks that break a list that has been begun so and gets so many entries."""

    def forbidden(self, tokens: Sequence[int]) -> Tokens | None:
        """The tokens that must not follow a completion's tokens so far, as ids, or None if any may follow."""
        text = "".join(map(self._pieces.__getitem__, tokens))
        steps = _STEPS.search(text)
        if steps is None:
            return None
        forbidden = self._forbidden(text, steps[1])
        return forbidden if len(forbidden) else None

    def _forbidden(self, text: str, said: str) -> Tokens:
        workers = _WORKER.findall(said)
        if (start := text.rfind(_ACCESS)) >= 0:
            return self._breaking_count(text[start + 1 :], len(workers))
        if (start := text.rfind(_SUBTASKS)) >= 0:
            if _LAST in text[start:]:  # The list is closed.
                return _NONE
            *before, begun = text[start:].split(_NEXT)
            marks = self._last if len(before) < len(workers) - 1 else self._next
            return np.concatenate((marks, self._finding_other(begun, said.split(", "), len(before))))
        start = text.rfind(_WORKERS)
        if start < 0 or "]" in text[start:]:
            return _NONE
        return self._not_continuing(f"{_WORKERS} = [{', '.join(workers)}]".removeprefix(text[start:]))

    def _containing(self, *marks: str) -> Tokens:
        """The tokens whose text has one of these marks."""
        return np.array(
            [token for token, piece in enumerate(self._pieces) if any(mark in piece for mark in marks)],
            np.int64,
        )

    def _breaking_count(self, begun: str, count: int) -> Tokens:
        state = _state_after(begun, count)
        breaking = self._breaking.get((state, count))
        if breaking is None:
            fits = [_state_after(self._pieces[token], count, state) for token in self._marks.tolist()]
            breaking = self._marks[[after is False for after in fits]]
            self._breaking[state, count] = breaking
        return breaking

    def _finding_other(self, begun: str, steps: Sequence[str], number: int) -> Tokens:
        """The tokens that would let a begun subtask find something else than the thought says of its step."""
        step_finding = _FOUND.fullmatch(steps[number]) if number < len(steps) else None
        _, find, begun_finding = begun.partition(_FIND)
        if not step_finding or not find:
            return _NONE
        # A word goes on with the same relation ("launch year"), or another one begins ("emblem of the birthplace").
        words = [(f" {word}", f" of the {word}") for word in step_finding[1].split(" ")]
        for forms in (words[0][:1], *words[1:], (" of",)):
            whole = next((form for form in forms if begun_finding.startswith(form)), None)
            if whole is None:
                rests = [form.removeprefix(begun_finding) for form in forms if form.startswith(begun_finding)]
                return self._not_continuing(*rests) if rests else _NONE
            begun_finding = begun_finding.removeprefix(whole)
        return _NONE

    def _not_continuing(self, *rests: str) -> Tokens:
        """All tokens with which a text that must go on with one of `rests` cannot go on."""
        begins = {rest[:end] for rest in rests for end in range(1, len(rest) + 1)}
        wrong = np.ones(len(self._pieces), bool)
        wrong[[self._token_of[begin] for begin in begins if begin in self._token_of]] = False
        return np.flatnonzero(wrong)


class _ListState(NamedTuple):
    """What a list of lists has so far."""

    depth: int = 0
    """How many lists are open."""
    commas: int = 0
    """How many entries of the outer list have ended with a comma."""
    filled: bool = False
    """Whether something stands after the last comma."""


_START = _ListState()


def _state_after(text: str, count: int, state: _ListState | bool = _START) -> _ListState | bool:
    """The state of a list of lists after more text. Once it has closed, or cannot have `count` entries any more, this
    is whether it has them.
    """
    if isinstance(state, bool):
        return state
    depth, commas, filled = state
    for character in text:
        if character == "]":
            depth -= 1
            if depth == 0:
                return filled and commas == count - 1
        elif character == "," and depth == 1:
            if not filled:
                return False
            commas += 1
            filled = False
        elif depth and not character.isspace():
            filled = True
        if character == "[":
            depth += 1
        if commas >= count or depth > 2:
            return False
    return _ListState(depth, commas, filled)
