"""Guided decoding: the lists of a plan get as many entries as the thought before them says.

A small model miscounts entries that bear no number, so most of its long plans could not be read, and reinforcement
would give them up before they pay. A policy whose prompt settings say so (`PromptSettings.guided`) is guided in
training and in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from podium.conductor.prompt import PromptSettings

_STEPS = re.compile(r"steps (?:(\d+)|([a-z]+\d+(?: [a-z]+\d+)*))\n")
"""As a thought ends: "steps 2", or a word for each step: "steps laws3 persons0"."""
_WORKERS, _ACCESS = "\nmodel_id", "\naccess_list"


class Guide:
    """Which tokens would give the list of workers or the list of access lists a wrong number of entries.

    Args:
        decode: the text of some tokens.
        vocabulary: the number of tokens that the policy knows.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], vocabulary: int) -> None:
        self._pieces = [decode([token]) for token in range(vocabulary)]
        self._candidates = [token for token, piece in enumerate(self._pieces) if set(piece) & set("[],")]

    @classmethod
    def of(
        cls, prompt: PromptSettings, decode: Callable[[Sequence[int]], str], vocabulary: int
    ) -> Guide | None:
        """The guide of a policy with these prompt settings; None: it is not guided."""
        return cls(decode, vocabulary) if prompt.guided else None

    def forbidden(self, tokens: Sequence[int]) -> list[int] | None:
        """The tokens that must not follow a completion's tokens so far, as ids; None: any may follow."""
        text = "".join(self._pieces[token] for token in tokens)
        count = _said(text)
        if not count:
            return None
        depth, place = 2, text.rfind(_ACCESS)
        if place < 0:
            depth, place = 1, text.rfind(_WORKERS)
        if place < 0:
            return None
        begun = text[place + 1 :]
        if depth == 1 and "]" in begun:  # It is closed.
            return None
        wrong = [t for t in self._candidates if not _fits(begun + self._pieces[t], count, depth)]
        return wrong or None


def _said(text: str) -> int:
    """How many steps the thought says; 0: it does not say it, or the plan has none."""
    steps = _STEPS.search(text)
    if steps is None:
        return 0
    count, words = steps.groups()
    return int(count) if count else len(words.split())


def _fits(begun: str, count: int, most: int) -> bool:
    """Whether a list that begins so may still have `count` entries.

    Args:
        most: how deep its brackets go: 1 for numbers, 2 for a list of lists.
    """
    depth = commas = 0
    filled = False  # Whether something stands after the last comma.
    for character in begun:
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
        if commas >= count or depth > most:
            return False
    return True
