"""Selects baseline plans on training questions: votes, fixed plans, cascades.

It runs no plan. From known answers (`podium.planners.answer_matrix`), it computes how well thousands of plans would do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product

import numpy as np

from podium.evals.comparison import PlannerKind
from podium.executor.early_stopping import comparable_costs
from podium.planners import Cascade, Committee
from podium.planners.answer_matrix import MAX_ANSWERS, NO_ANSWER, AnswerMatrix, Floats, Members
from podium.planners.planner import Planner
from podium.types import Profile

_BEAM_WIDTH = 20
COST_TOLERANCE = 1 + 1e-9
"""Costs are sums of floats, so a cost may exceed its limit by this factor."""


def best_vote(answers: AnswerMatrix, *, weighted: bool, most: int = MAX_ANSWERS) -> Committee:
    """The best vote of the k most accurate workers, each of which answers once. k is at most `most`.

    The weights depend on how many wrong answers a question has. Two numbers are tried: an estimate from the training
    questions, and 1.
    """
    order = tuple(int(w) for w in np.argsort(-answers.accuracy, kind="stable"))
    best = [order[:k] for k in range(1, most + 1)]
    tried: list[tuple[Members, tuple[float, ...]]] = [(members, ()) for members in best]
    if weighted:
        many = _wrong_answers(answers)
        tried = [(members, _weights(answers, members, wrong)) for members in best for wrong in (many, 1.0)]
    members, weights = max(tried, key=lambda plan: answers.vote_scores(*plan).mean())
    return Committee(tuple(answers.workers[w] for w in members), weights)


def best_fixed_plan(
    answers: AnswerMatrix,
    *,
    most: int = MAX_ANSWERS,
    max_cost: float = math.inf,
) -> Committee | None:
    """The best vote of at most `most` answers that costs at most `max_cost`. None if every worker costs more.

    A worker may answer several times. Of equally accurate committees the cheapest wins. The search is a beam search
    over committees of one answer, two answers, and so on. Of each size it extends the 20 best committees, and the 20
    best that keep to the cost.
    """
    cost_of = cache(lambda members: float(answers.cost[list(members)].sum()))
    share_of = cache(lambda members: float(answers.vote_scores(members).mean()))
    limit = max_cost * COST_TOLERANCE

    def is_within(members: Members) -> bool:
        return limit == math.inf or cost_of(members) <= limit

    def best(committees: Iterable[Members]) -> list[Members]:
        return sorted(committees, key=lambda members: (-share_of(members), members))[:_BEAM_WIDTH]

    beam: list[Members] = [(w,) for w in range(len(answers.workers))]
    plans = beam
    for _ in range(most - 1):
        grown = {
            tuple(sorted((*members, w), key=lambda w: -answers.accuracy[w]))
            for members in beam
            for w in range(len(answers.workers))
            if members.count(w) < answers.samples_of(w)
        }
        beam = list(dict.fromkeys([*best(filter(is_within, grown)), *best(grown)]))
        plans = [*plans, *beam]
    affordable = list(filter(is_within, plans))
    if not affordable:
        return None
    accuracy = max(map(share_of, affordable))
    members = min((members for members in affordable if share_of(members) == accuracy), key=cost_of)
    return Committee(tuple(answers.workers[w] for w in members))


def best_cascade(answers: AnswerMatrix, *, max_cost: float = math.inf) -> Cascade | None:
    """The best cascade: two workers, and a third that answers if they disagree. None if all cost more than
    `max_cost`."""
    plans = list(_cascades(answers, max_cost * COST_TOLERANCE))
    if not plans:
        return None
    _, _, first, then = max(plans)
    return Cascade(tuple(answers.workers[w] for w in first), answers.workers[then])


def _cascades(answers: AnswerMatrix, max_cost: float) -> Iterator[tuple[float, float, Members, int]]:
    """Each cascade: its accuracy, its negative cost, the pair, and the worker that answers if the pair disagrees."""
    workers = range(len(answers.workers))
    for pair, then in product(combinations(workers, 2), workers):
        if then in pair:
            continue
        score_Q, cost_Q = cascade_figures(answers, pair, then)
        if cost_Q.mean() <= max_cost:
            yield float(score_Q.mean()), -float(cost_Q.mean()), pair, then


def cascade_figures(answers: AnswerMatrix, first: Members, then: int) -> tuple[Floats, Floats]:
    """[Q] each: the scores and the dollars of a cascade whose worker `then` answers if the workers `first` disagree."""
    agreed_Q = answers.unanimous(first)
    score_Q = np.where(agreed_Q, answers.voted_QWR[:, first[0], 0], answers.alone_QWR[:, then, 0])
    cost_Q = answers.cost_QW[:, first].sum(axis=1) + np.where(agreed_Q, 0.0, answers.cost_QW[:, then])
    return score_Q, cost_Q


@dataclass(frozen=True)
class PlannerSelection:
    """A planner of a suite that is chosen on training questions."""

    kind: PlannerKind
    label: str
    choose: Callable[[AnswerMatrix], Planner | None]
    """Chooses the planner from answers to training questions. Returns None if there are too few workers."""


PLANNER_SELECTIONS: Mapping[str, PlannerSelection] = {
    "best-vote": PlannerSelection(
        "committee", "Best vote of the best workers", partial(best_vote, weighted=False)
    ),
    "best-weighted-vote": PlannerSelection(
        "committee", "Best weighted vote of the best workers", partial(best_vote, weighted=True)
    ),
    "best-committee": PlannerSelection("committee", "Best vote of any five answers", best_fixed_plan),
    "best-cascade": PlannerSelection("cascade", "Best cascade", best_cascade),
}


def _weights(answers: AnswerMatrix, members: Members, wrong: float) -> tuple[float, ...]:
    """The weight of each vote: log(p / (1 - p)) + log(K - 1), where p is the worker's accuracy. It is at least 0.01.

    This is the naive Bayes vote of Kuncheva and Rodríguez, "A weighted voting framework for classifiers ensembles"
    (2014). It assumes that answers are independent, and all wrong answers equally likely.

    Args:
        wrong: K - 1, the number of wrong answers that a question has.
    """
    share = answers.accuracy[list(members)].clip(0.01, 0.99)
    odds = np.log(share / (1 - share)) + math.log(wrong)
    return tuple(max(0.01, round(float(weight), 3)) for weight in odds)


def _wrong_answers(answers: AnswerMatrix) -> float:
    """An estimate of K - 1, the number of a question's wrong answers, from how often two wrong workers agree.

    If all wrong answers are equally likely, one of K - 1 such pairs agrees. One agreement is added to the counts, so
    the estimate is finite, and 1 if no two workers are wrong on the same question.
    """
    answer_QW = answers.answer_QWR[:, :, 0]
    wrong_QW = (answer_QW != NO_ANSWER) & (answers.voted_QWR[:, :, 0] == 0)
    pairs = same = 0
    for one, other in combinations(range(len(answers.workers)), 2):
        both_Q = wrong_QW[:, one] & wrong_QW[:, other]
        pairs += int(both_Q.sum())
        same += int((both_Q & (answer_QW[:, one] == answer_QW[:, other])).sum())
    return (pairs + 1) / (same + 1)


def voter_prices(profiles_QW: Sequence[Sequence[Profile]]) -> Callable[[Members], Floats]:
    """Gives for each vote the prices [Q, W] by which the executor orders voters, cheapest first. They are the dollars
    of an answer by the ratings, or the profiles' own prices if a member of the vote has no rating."""
    unrated_QW = [[profile.model_copy(update={"rating": None}) for profile in row] for row in profiles_QW]
    listed_QW = np.array([comparable_costs(row) for row in unrated_QW])
    measured_QW = np.array(
        [[math.nan if p.rating is None else p.rating.cost_usd for p in row] for row in profiles_QW]
    )

    def prices_of(members: Members) -> Floats:
        unknown_Q1 = np.isnan(measured_QW[:, members]).any(axis=1, keepdims=True)
        chosen: Floats = np.where(unknown_Q1, listed_QW, measured_QW)
        return chosen

    return prices_of
