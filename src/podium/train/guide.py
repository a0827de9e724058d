"""Guided sampling: the lists of a plan get as many entries as the thought before them says.

A small model miscounts entries that bear no number, so most of its long plans cannot be read, and reinforcement gives
them up before they pay. While sampling is guided, such plans run, and the right ones among them teach the model to
count. It is for the first iterations of a training alone: nothing guides the policy that is trained.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from podium.conductor.codec import Codec

_STEPS = re.compile(r"steps (\d+)\n")
"""As `podium.warmstart.examples` ends the thought."""
_WORKERS, _ACCESS = "\nmodel_id", "\naccess_list"


class Guide:
    """Which tokens would give the list of workers or the list of access lists a wrong number of entries.

    Args:
        codec: of the policy.
        vocabulary: the number of its tokens.
    """

    def __init__(self, codec: Codec, vocabulary: int) -> None:
        self._pieces = [codec.decode([token]) for token in range(vocabulary)]
        self._candidates = [token for token, piece in enumerate(self._pieces) if set(piece) & set("[],")]

    def forbidden(self, tokens: Sequence[int]) -> Tensor | None:
        """The tokens that must not follow a completion's tokens so far, as ids; None: any may follow."""
        text = "".join(self._pieces[token] for token in tokens)
        steps = _STEPS.search(text)
        if steps is None:
            return None
        depth, place = 2, text.rfind(_ACCESS)
        if place < 0:
            depth, place = 1, text.rfind(_WORKERS)
        if place < 0:
            return None
        begun, count = text[place + 1 :], int(steps.group(1))
        wrong = [t for t in self._candidates if not _fits(begun + self._pieces[t], count, depth)]
        return torch.tensor(wrong) if wrong else None


def _fits(begun: str, count: int, most: int) -> bool:
    """Whether a list that begins so may still have `count` entries.

    Args:
        most: how deep its brackets go: 1 for numbers, 2 for a list of lists.
    """
    depth = commas = 0
    for character in begun:
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return commas == count - 1
        elif character == ",":
            commas += depth == 1
        if commas >= count or depth > most:
            return False
    return True
