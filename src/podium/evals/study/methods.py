"""The methods that a study tries: single workers, votes, cascades, and a router by ratings.

A method makes its choices (which workers, which pair, which price of accuracy) on some answers. The result is a
`FittedMethod`, which can be scored on other answers and whose planner can be served. Everything is computed from known
answers, and no worker is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.evals.plan_selection import best_cascade, best_fixed_plan, cascade_figures
from podium.evals.rating import find_clusters, fit_words, rate
from podium.planner import Planner
from podium.planners import Cascade, Committee
from podium.planners.answers import AnswerMatrix, Floats, Members, committee_accuracy, committee_cost
from podium.planners.rating_router import RatingRouter
from podium.planners.voting import Single
from podium.types import Profile
from podium.workers.ratings import Ratings

_COST_CAP = 0.5
"""The share of the best worker's price that methods with a capped cost may cost."""
_QUESTIONS_PER_CLUSTER = 25
_MOST_CLUSTERS = 64


def best_single(answers: AnswerMatrix) -> int:
    """The number of the most accurate worker. Of equally accurate workers, the cheapest."""
    accuracy, cost = answers.accuracy, answers.cost
    return max(range(len(cost)), key=lambda w: (accuracy[w], -cost[w]))


@dataclass(frozen=True)
class FittedMethod:
    """A method with its choices made."""

    label: str
    """What was chosen, in words."""
    planner: str
    """The planner's name, as `open_baseline` reads it."""
    figures: Callable[[AnswerMatrix], tuple[Floats, Floats]]
    """[Q] each: the method's scores and dollars on the questions of these answers."""
    rounds: int = 1
    ratings: Ratings | None = None
    """The ratings that the planner reads. None if it reads none."""


def clustered_ratings(answers: AnswerMatrix) -> Ratings:
    """Every worker's figures on clusters of these questions."""
    count = min(_MOST_CLUSTERS, len(answers.texts) // _QUESTIONS_PER_CLUSTER)
    return answers.cached("ratings", lambda: rate(answers, find_clusters(answers.texts, count)))


def _word_ratings(answers: AnswerMatrix) -> Ratings:
    """Every worker's figures, with accuracies that are predicted from a question's words."""
    return answers.cached(
        "word ratings",
        lambda: clustered_ratings(answers).model_copy(update={"words": fit_words(answers)}),
    )


@dataclass(frozen=True)
class StudyMethod:
    """One way to answer questions, before its choices are made."""

    name: str
    choose: Callable[[AnswerMatrix], FittedMethod | None]
    """Makes the choices on these answers. Returns None if there is nothing to choose from, as when a third worker is
    needed."""
    is_team: bool = True
    """Whether the method may call more than one worker."""
    is_cost_capped: bool = False
    """Whether the method is limited to a low price. Then it is tested for being as good and cheaper, but not for being
    better, since the same method without the limit is tested for that."""


def methods_for(answers: AnswerMatrix, *, teams: bool = True) -> Iterator[StudyMethod]:
    """The methods that a study tries. The first is the best single worker, with which the others are compared.

    This worker is the best on these very answers, which flatters it, so a team has to beat a flattered figure.

    Args:
        answers: all answers of the study.
        teams: whether teams are tried. They are not if only single answers can be judged, as by agreement.
    """
    workers, best = answers.workers, best_single(answers)
    for number in sorted(range(len(workers)), key=lambda number: number != best):
        yield StudyMethod(f"{workers[number]} alone", _always_worker(number), is_team=False)
    if not teams or len(workers) < 2:
        return
    half = _COST_CAP * float(answers.cost[best])
    yield StudyMethod("vote", _fit_vote)
    yield StudyMethod("vote at half the price", lambda answers: _fit_vote(answers, half), is_cost_capped=True)
    if len(workers) > 2:
        yield StudyMethod("cascade", _fit_cascade)
        yield StudyMethod(
            "cascade at half the price", lambda answers: _fit_cascade(answers, half), is_cost_capped=True
        )
    yield StudyMethod("router by ratings", _fit_router)
    yield StudyMethod(
        "router at half the price", lambda answers: _fit_router(answers, half), is_cost_capped=True
    )


def fitted_method(
    planner: Planner, answers: AnswerMatrix, label: str = "", ratings: Ratings | None = None
) -> FittedMethod:
    """The method of a planner whose choices are made: a vote, a cascade, a router or one worker.

    Args:
        answers: the answers of the planner's workers, to questions in any order.
        ratings: the ratings that a router reads.
    """
    match planner:
        case Committee():
            members = _worker_numbers(answers, planner.workers)
            return FittedMethod(
                label,
                planner.name,
                lambda other: (
                    committee_accuracy(other, members),
                    committee_cost(other, members, early_stop=True),
                ),
            )
        case Cascade():
            first, (then,) = _worker_numbers(answers, planner.first), _worker_numbers(answers, [planner.then])
            return FittedMethod(
                label,
                planner.name,
                lambda other: cascade_figures(other, first, then),
                rounds=Cascade.rounds,
            )
        case RatingRouter() if ratings is not None:
            return FittedMethod(
                label,
                planner.name,
                lambda other: _router_figures(planner, ratings, other),
                ratings=ratings,
            )
        case Single():
            return _fit_single(answers, answers.workers.index(planner.worker))
    raise TypeError(f"{planner} is no planner of a study")


def _router_figures(planner: RatingRouter, ratings: Ratings, answers: AnswerMatrix) -> tuple[Floats, Floats]:
    """[Q] each: the scores and dollars of the workers that the router chooses."""
    names = [planner.choose(_rated_profiles(ratings, answers.workers, text)) for text in answers.texts]
    chosen = np.arange(len(names)), list(_worker_numbers(answers, names))
    return answers.score_QW[chosen], answers.cost_QW[chosen]


def _always_worker(worker: int) -> Callable[[AnswerMatrix], FittedMethod]:
    return lambda answers: _fit_single(answers, worker)


def _fit_single(answers: AnswerMatrix, worker: int) -> FittedMethod:
    name = answers.workers[worker]
    return FittedMethod(
        f"{name} alone",
        Single(name).name,
        lambda other: (other.score_QW[:, worker], other.cost_QW[:, worker]),
    )


def _fit_vote(answers: AnswerMatrix, most_usd: float = float("inf")) -> FittedMethod | None:
    # The limit holds for the price of asking all workers. Of equal votes the cheapest is taken, and it stops early.
    plan = best_fixed_plan(answers, max_cost=most_usd)
    if plan is None:
        return None
    members = _worker_numbers(answers, plan.workers)
    if len(members) == 1:
        return _fit_single(answers, members[0])
    return fitted_method(plan, answers, f"a vote of {_voters_text(plan)}")


def _fit_cascade(answers: AnswerMatrix, most_usd: float = float("inf")) -> FittedMethod | None:
    plan = best_cascade(answers, max_cost=most_usd)
    if plan is None:
        return None
    label = f"a cascade of {' and '.join(plan.first)}, then {plan.then} where they disagree"
    return fitted_method(plan, answers, label)


def _fit_router(answers: AnswerMatrix, most_usd: float = float("inf")) -> FittedMethod | None:
    ratings = _word_ratings(answers)
    predicted_QW, usd_QW = answers.cached("predictions", lambda: _predictions(ratings, answers))
    per_usd = next(
        (
            per_usd
            for per_usd in (0.0, *_prices(predicted_QW, usd_QW))
            if _mean_cost(predicted_QW - per_usd * usd_QW, answers) <= most_usd
        ),
        None,
    )
    if per_usd is None:
        return None
    saving = f"; a cent more has to buy {per_usd:.3g} points" if per_usd else ""
    label = f"the best-rated worker of each kind of question{saving}"
    return fitted_method(RatingRouter(per_usd), answers, label, ratings)


def _rated_profiles(ratings: Ratings, workers: Sequence[str], text: str) -> list[Profile]:
    return [ratings.rated(Profile(name=name), text) for name in workers]


def _predictions(ratings: Ratings, answers: AnswerMatrix) -> tuple[Floats, Floats]:
    """[Q, W] each: the accuracy and the dollars that the ratings predict."""
    rated = [[p.rating for p in _rated_profiles(ratings, answers.workers, text)] for text in answers.texts]
    accuracy = [[rating.accuracy if rating else 0.0 for rating in row] for row in rated]
    usd = [[rating.cost_usd if rating else 0.0 for rating in row] for row in rated]
    return np.array(accuracy), np.array(usd)


def _prices(predicted_QW: Floats, usd_QW: Floats) -> Iterator[float]:
    """Prices of a dollar in accuracy, in ascending order. A higher price prefers cheap workers more often."""
    highest = float(usd_QW.max())
    if highest > 0:
        yield from (float(f"{power:.3g}") for power in np.geomspace(0.001, 100, 41) / highest)


def _mean_cost(worth_QW: Floats, answers: AnswerMatrix) -> float:
    chosen = worth_QW.argmax(axis=1)
    return float(answers.cost_QW[np.arange(len(chosen)), chosen].mean())


def _worker_numbers(answers: AnswerMatrix, names: Sequence[str]) -> Members:
    return tuple(answers.workers.index(name) for name in names)


def _voters_text(committee: Committee) -> str:
    names = committee.workers
    counted = [
        f"{names.count(name)} x {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
    ]
    return ", ".join(counted[:-1]) + f" and {counted[-1]}" if len(counted) > 1 else counted[0]
