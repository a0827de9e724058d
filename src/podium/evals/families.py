"""The best plan for each family of questions, by answers that are known: what a table of families could do.

A planner that is told the family of each question knows more than a Conductor, so the two are fairly compared only in
one direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

import numpy as np

from podium.baselines import Committee
from podium.ratings.answers import MOST, Answers, Members, means_by

_TRUST = 2.0
"""A family's questions are joined by so many that went as the plan goes on all: there are few in a family."""

_WORKERS = 10
"""Whom plans are made of: with thirty workers there are more votes of five than memory holds verdicts on."""


def best_plans(answers: Answers) -> Mapping[str, Committee]:
    """For each family the best vote of one worker up to five answers, of the ten workers that are best on all."""
    plans = list(_plans(answers))
    right_QP = np.empty((len(answers.texts), len(plans)))
    for p, plan in enumerate(plans):
        right_QP[:, p] = answers.voted(plan)
    return {
        family: Committee(tuple(answers.workers[w] for w in plans[int(mean_P.argmax())]))
        for family, mean_P in means_by(answers.families, right_QP, _TRUST).items()
    }


def _plans(answers: Answers) -> Iterator[Members]:
    """Votes of 1, 3 and 5 answers, and of 2 and 4 where nobody can answer twice; the best workers first."""
    order = np.argsort(-answers.accuracy, kind="stable")[:_WORKERS].tolist()
    sizes = (1, 3, MOST) if answers.samples > 1 else range(1, MOST + 1)
    for size in sizes:
        for places in combinations_with_replacement(range(len(order)), size):
            plan = tuple(order[place] for place in places)
            if all(plan.count(worker) <= answers.samples_of(worker) for worker in plan):
                yield plan
