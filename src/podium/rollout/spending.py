"""What committees of recorded workers cost, if all answer or if none is called once the vote is certain.

The order of calls is `executor.early_stopping`'s.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from podium.executor.early_stopping import next_turn
from podium.rollout.answers import Answers, Floats, Members
from podium.workers.vote import VoteWorker

_VOTE = VoteWorker()


def spent(
    answers: Answers, members: Members, *, early_stop: bool = False, price_QW: Floats | None = None
) -> Floats:
    """[Q]: dollars, the mean over which of the samples comes first.

    Args:
        early_stop: whether a vote stops once it is certain.
        price_QW: by which the cheapest is called first; None: what each costs in the mean of all questions.
    """
    cost_QM = answers.cost_QW[:, members]
    if not early_stop or len(members) == 1:
        total_Q: Floats = cost_QM.sum(axis=1)
        return total_Q
    prices_QM = (np.broadcast_to(answers.cost, answers.cost_QW.shape) if price_QW is None else price_QW)[
        :, members
    ]
    order_QM = np.argsort(prices_QM, axis=1, kind="stable")
    turns = []
    for turn in answers.turns:
        answer_QM = turn.given(members)
        cases, case_Q = np.unique(np.hstack([answer_QM, order_QM]), axis=0, return_inverse=True)
        called_CM = np.array(
            [
                _called(_renumbered(case[: len(members)]), tuple(case[len(members) :]))
                for case in cases.tolist()
            ]
        )
        turns.append((called_CM[case_Q] * cost_QM).sum(axis=1))
    mean_Q: Floats = np.mean(turns, axis=0)
    return mean_Q


def _renumbered(answers: list[int]) -> tuple[int, ...]:
    """By first occurrence; -1 stays: no answer."""
    numbers: dict[int, int] = {}
    return tuple(answer if answer < 0 else numbers.setdefault(answer, len(numbers)) for answer in answers)


@lru_cache(maxsize=2**16)
def _called(answers: tuple[int, ...], order: tuple[int, ...]) -> tuple[bool, ...]:
    """Which of a committee are called, if these are their answers."""
    heard: list[str | None] = [None] * len(answers)
    while turn := next_turn(_VOTE, "", heard, order):
        for place in turn:
            heard[place] = "" if answers[place] < 0 else f"Answer: {answers[place]}"
    return tuple(text is not None for text in heard)
