"""The best plan for each family of questions, by answers that are known: what a table of families could do.

A planner that is told the family of each question knows more than a Conductor, so the two are fairly compared only in
one direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

import numpy as np

from podium.baselines import Committee
from podium.rollout.answers import MOST, Answers, Members, means_by

_TRUST = 2.0
"""A family's questions are joined by so many that went as the plan goes on all: there are few in a family."""


def best_plans(answers: Answers) -> Mapping[str, Committee]:
    """For each family the best vote of one worker up to five answers, of those with the highest such mean."""
    plans = list(_plans(answers))
    right_QP = np.stack([answers.voted(plan) for plan in plans], axis=1)
    return {
        family: Committee(tuple(answers.workers[w] for w in plans[int(mean_P.argmax())]))
        for family, mean_P in means_by(answers.families, right_QP, _TRUST).items()
    }


def _plans(answers: Answers) -> Iterator[Members]:
    """Votes of 1, 3 and 5 answers, and of 2 and 4 where nobody can answer twice; the best workers first."""
    order = np.argsort(-answers.accuracy, kind="stable").tolist()
    sizes = (1, 3, MOST) if answers.samples > 1 else range(1, MOST + 1)
    for size in sizes:
        for places in combinations_with_replacement(range(len(order)), size):
            if max(map(places.count, places)) <= answers.samples:
                yield tuple(order[place] for place in places)
