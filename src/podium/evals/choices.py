"""Plans for all questions, chosen on training questions: votes, fixed plans, cascades.

Thousands of them are looked at as numbers (`podium.ratings.answers`); what they are worth is measured by running them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, product

import numpy as np

from podium.baselines import Cascade, Committee
from podium.ratings.answers import MOST, NO_ANSWER, Answers, Members

_BEAM = 20
HAIR = 1 + 1e-9
"""Costs are sums of floats."""


def best_of_most(answers: Answers, *, weighted: bool, most: int = MOST) -> Committee:
    """A vote of the best k workers, with the k that is best; each answers once.

    Weights are those of a choice among as many answers as training questions have, or of two, whichever vote better.
    """
    order = tuple(int(w) for w in np.argsort(-answers.accuracy, kind="stable"))
    best = [order[:k] for k in range(1, most + 1)]
    tried: list[tuple[Members, tuple[float, ...]]] = [(members, ()) for members in best]
    if weighted:
        many = _wrong_answers(answers)
        tried = [(members, _weights(answers, members, wrong)) for members in best for wrong in (many, 1.0)]
    members, weights = max(tried, key=lambda plan: answers.voted(*plan).mean())
    return Committee(tuple(answers.workers[w] for w in members), weights)


def best_fixed(
    answers: Answers,
    *,
    most: int = MOST,
    max_cost: float = math.inf,
    cost_of: Callable[[Members], float] | None = None,
) -> Committee | None:
    """The best vote of at most `most` answers whose cost is within `max_cost`, grown one answer at a time.

    Of each size the 20 best are grown, and the 20 best within the cost; a worker may answer several times. Of equally
    good ones the cheapest. None: nobody is within the cost.

    Args:
        cost_of: dollars of a committee; None: those of asking everybody.
    """
    full = answers.cost
    cost_of = cache(cost_of or (lambda members: float(full[list(members)].sum())))
    share_of = cache(lambda members: float(answers.voted(members).mean()))
    limit = max_cost * HAIR

    def is_within(members: Members) -> bool:
        return limit == math.inf or cost_of(members) <= limit

    def best(committees: Iterable[Members]) -> list[Members]:
        return sorted(committees, key=lambda members: (-share_of(members), members))[:_BEAM]

    beam: list[Members] = [(w,) for w in range(len(answers.workers))]
    found = beam
    for _ in range(most - 1):
        grown = {
            tuple(sorted((*members, w), key=lambda w: -answers.accuracy[w]))
            for members in beam
            for w in range(len(answers.workers))
            if members.count(w) < answers.samples_of(w)
        }
        beam = list(dict.fromkeys([*best(filter(is_within, grown)), *best(grown)]))
        found = [*found, *beam]
    affordable = list(filter(is_within, found))
    if not affordable:
        return None
    most_right = max(map(share_of, affordable))
    members = min((members for members in affordable if share_of(members) == most_right), key=cost_of)
    return Committee(tuple(answers.workers[w] for w in members))


def best_cascade(answers: Answers, *, max_cost: float = math.inf) -> Cascade | None:
    """The best pair with the best worker to fall back on, within `max_cost`; None: none is within it."""
    plans = list(_cascades(answers, max_cost * HAIR))
    if not plans:
        return None
    _, _, first, then = max(plans)
    return Cascade(tuple(answers.workers[w] for w in first), answers.workers[then])


def _cascades(answers: Answers, max_cost: float) -> Iterator[tuple[float, float, Members, int]]:
    """How right each is, its cost with the sign turned, the pair, and who decides where they disagree."""
    alone_QW, voted_QW = answers.alone_QWR[:, :, 0], answers.voted_QWR[:, :, 0]
    workers = range(len(answers.workers))
    for pair, then in product(combinations(workers, 2), workers):
        if then in pair:
            continue
        agreed = answers.unanimous(pair)
        cost = answers.cost_QW[:, pair].sum(axis=1) + np.where(agreed, 0.0, answers.cost_QW[:, then])
        if cost.mean() <= max_cost:
            right = np.where(agreed, voted_QW[:, pair[0]], alone_QW[:, then])
            yield float(right.mean()), -float(cost.mean()), pair, then


def _weights(answers: Answers, members: Members, wrong: float) -> tuple[float, ...]:
    """log(p / (1 - p)) + log(K - 1), p being how right a worker is; `wrong` is K - 1, the wrong answers to choose from.

    As if answers were independent, and wrong ones equally likely: the naive Bayes vote of Kuncheva and Rodríguez, "A
    weighted voting framework for classifiers ensembles" (2014). At least a hundredth.
    """
    share = answers.accuracy[list(members)].clip(0.01, 0.99)
    odds = np.log(share / (1 - share)) + math.log(wrong)
    return tuple(max(0.01, round(float(weight), 3)) for weight in odds)


def _wrong_answers(answers: Answers) -> float:
    """K - 1: so many equally likely wrong answers would make two workers who are wrong agree as often as they do.

    Where no two are wrong, 1. One agreement is counted that nobody saw, so that some are expected.
    """
    answer_QW = answers.answer_QWR[:, :, 0]
    wrong_QW = (answer_QW != NO_ANSWER) & (answers.voted_QWR[:, :, 0] == 0)
    pairs = same = 0
    for one, other in combinations(range(len(answers.workers)), 2):
        both_Q = wrong_QW[:, one] & wrong_QW[:, other]
        pairs += int(both_Q.sum())
        same += int((both_Q & (answer_QW[:, one] == answer_QW[:, other])).sum())
    return (pairs + 1) / (same + 1)
