"""What committees are worth on each kind of question, by the verdicts on training questions.

With recorded answers every committee can be tried on every question. Its worth on a kind is the share of that kind's
questions on which it is right, drawn towards its share on all, for a kind has few; less what it costs, as dearly as
the level of thrift says. Which kind a question is of stands in its wording alone (`kinds`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from random import Random

import numpy as np

from podium.rollout.answers import MOST, Answers, Floats, Members, means_by

_SIZES = (1, 2, 3, 5)
_DIFFERENT = 3
"""Different workers of a committee that asks somebody twice, at most."""
_TRUST = 3.0
"""A kind's questions are joined by so many that went as the committee goes on all."""
_SHARP = 0.001
"""Accuracy by which a committee must be behind the best to be drawn 1/e as often."""


class Worth:
    """A table of kinds and committees.

    Args:
        answers: of training questions.
        kind_of: by text.
        thrift: accuracy that a dollar is worth, at each level.
    """

    def __init__(self, answers: Answers, kind_of: Mapping[str, str], thrift: Sequence[float]) -> None:
        self.workers = answers.workers
        plans = list(_committees(answers))
        right_QP = np.stack([_right(answers, plan) for plan in plans], axis=1)
        self._plans = plans
        self._right = means_by([kind_of[text] for text in answers.texts], right_QP, _TRUST)
        self._overall_P = right_QP.mean(axis=0)
        self._cost_P = np.array([answers.cost[list(plan)].sum() for plan in plans])
        self._size_P = np.array([len(plan) for plan in plans])
        self._has_PW = np.array([[worker in plan for worker in range(len(self.workers))] for plan in plans])
        self._thrift = tuple(thrift) or (0.0,)

    def draw(
        self, rng: Random, kind: str, team: Sequence[str], *, level: int = 0, most: int = MOST
    ) -> tuple[str, ...]:
        """A committee of the team, most often the one that is worth most; its best worker first.

        Args:
            team: names; those that are not of the recording are passed over.
            most: answers at most.
        """
        absent_W = np.array([worker not in team for worker in self.workers])
        worth_P = self._right.get(kind, self._overall_P) - self._thrift[level] * self._cost_P
        refused_P = self._has_PW[:, absent_W].any(axis=1) | (self._size_P > most)
        worth_P = np.where(refused_P, -np.inf, worth_P)
        weights_P = np.exp((worth_P - worth_P.max()) / _SHARP)
        (plan,) = rng.choices(self._plans, weights_P.tolist())
        return tuple(self.workers[worker] for worker in plan)


def _right(answers: Answers, plan: Members) -> Floats:
    """[Q]: how right a committee is, the mean over which of the samples comes first."""
    turns = [answers.turned(first).voted(plan) for first in range(answers.samples)]
    mean: Floats = np.mean(turns, axis=0)
    return mean


def _committees(answers: Answers) -> Iterator[Members]:
    """All of few different workers, each as often as it has samples; of five who answer once each, all."""
    order = np.argsort(-answers.accuracy, kind="stable").tolist()
    for size in _SIZES:
        for different in range(math.ceil(size / answers.samples), min(size, len(order)) + 1):
            if different > _DIFFERENT and answers.samples > 1:
                continue
            for workers in combinations(order, different):
                for extra in _spread(size - different, different, answers.samples - 1):
                    yield tuple(w for w, more in zip(workers, extra, strict=True) for _ in range(1 + more))


def _spread(count: int, places: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to put `count` into places of at most `most` each."""
    if places == 0:
        if count == 0:
            yield ()
        return
    for here in range(min(count, most) + 1):
        for rest in _spread(count - here, places - 1, most):
            yield (here, *rest)
