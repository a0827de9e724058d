"""The methods that a study tries: single workers, votes, cascades, and a router by ratings, and their cross-fitting.

A method makes its choices (which workers, which pair, which price of accuracy) on some answers. The result is a
`FittedMethod`, which can be scored on other answers and whose planner can be served. Everything is computed from known
answers, and no worker is called.

The questions are divided into folds. Each fold is scored by methods that made their choices on the other folds. So each
question counts once, and no choice is scored on a question that it was made on. The choice that is served is made in
the same way on all questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy as np

from podium.evals.plan_selection import best_cascade, best_fixed_plan, cascade_figures
from podium.evals.rating import find_clusters, fit_words, rate
from podium.planners import Cascade, Committee
from podium.planners.answer_matrix import (
    AnswerMatrix,
    Floats,
    Ints,
    committee_accuracy,
    committee_cost,
    select_questions,
)
from podium.planners.planner import Planner
from podium.planners.rating_router import RatingRouter
from podium.planners.voting import Single
from podium.types import Profile
from podium.workers.ratings import Ratings

FOLDS = 5
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
    planner: Planner
    """A `Single`, `Committee`, `Cascade` or `RatingRouter`."""
    ratings: Ratings | None = None
    """The ratings that a router reads."""

    @property
    def label(self) -> str:
        match self.planner:
            case Committee(workers):
                *most, last = [f"{n} x {name}" if n > 1 else name for name, n in Counter(workers).items()]
                return f"a vote of {', '.join(most)} and {last}" if most else f"a vote of {last}"
            case Cascade(first, then):
                return f"a cascade of {' and '.join(first)}, then {then} where they disagree"
            case RatingRouter(per_usd):
                saving = f"; a cent more has to buy {per_usd:.3g} points" if per_usd else ""
                return f"the best-rated worker of each kind of question{saving}"
            case Single(worker):
                return f"{worker} alone"
        raise TypeError(f"{self.planner} is no planner of a study")

    def figures(self, answers: AnswerMatrix) -> tuple[Floats, Floats]:
        """[Q] each: the method's scores and dollars on the questions of these answers."""
        number = answers.workers.index
        match self.planner:
            case Committee(workers):
                members = tuple(map(number, workers))
                return committee_accuracy(answers, members), committee_cost(answers, members, early_stop=True)
            case Cascade(first, then):
                return cascade_figures(answers, tuple(map(number, first)), number(then))
            case RatingRouter() as router if self.ratings is not None:
                names = [router.choose(profiles) for profiles in _rated_profiles(self.ratings, answers)]
            case Single(worker):
                names = [worker] * len(answers.texts)
            case _:
                raise TypeError(f"{self.planner} is no planner of a study")
        chosen = np.arange(len(names)), list(map(number, names))
        return answers.score_QW[chosen], answers.cost_QW[chosen]


@dataclass(frozen=True)
class StudyMethod:
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
    best = best_single(answers)
    singles = [FittedMethod(Single(name)) for name in answers.workers]
    for single in (singles[best], *singles[:best], *singles[best + 1 :]):
        yield StudyMethod(single.label, partial(_always, single), is_team=False)
    if not teams or len(singles) < 2:
        return
    half = _COST_CAP * float(answers.cost[best])
    fits = {"vote": _fit_vote, "cascade": _fit_cascade, "router by ratings": _fit_router}
    for name, fit in fits.items():
        yield StudyMethod(name, fit)
        capped = f"{name.split()[0]} at half the price"
        yield StudyMethod(capped, partial(fit, most_usd=half), is_cost_capped=True)


def _always(method: FittedMethod, answers: AnswerMatrix) -> FittedMethod:
    return method


def _fit_vote(answers: AnswerMatrix, most_usd: float = math.inf) -> FittedMethod | None:
    # The limit holds for the price of asking all workers. Of equal votes the cheapest is taken, and it stops early.
    plan = best_fixed_plan(answers, max_cost=most_usd)
    if plan is None:
        return None
    return FittedMethod(plan if len(plan.workers) > 1 else Single(plan.workers[0]))


def _fit_cascade(answers: AnswerMatrix, most_usd: float = math.inf) -> FittedMethod | None:
    plan = best_cascade(answers, max_cost=most_usd)
    return None if plan is None else FittedMethod(plan)


def _fit_router(answers: AnswerMatrix, most_usd: float = math.inf) -> FittedMethod | None:
    """The router at the lowest price of accuracy that keeps to the limit."""
    ratings = answers.cached("word ratings", lambda: _word_ratings(answers))
    predicted_QW, usd_QW = answers.cached("predictions", lambda: _predictions(ratings, answers))
    highest = float(usd_QW.max())
    prices = np.geomspace(0.001, 100, 41) / highest if highest > 0 else ()
    for per_usd in (0.0, *(float(f"{price:.3g}") for price in prices)):
        chosen_Q = (predicted_QW - per_usd * usd_QW).argmax(axis=1)
        if answers.cost_QW[np.arange(len(chosen_Q)), chosen_Q].mean() <= most_usd:
            return FittedMethod(RatingRouter(per_usd), ratings)
    return None


def clustered_ratings(answers: AnswerMatrix) -> Ratings:
    """Every worker's figures on clusters of these questions."""
    count = min(_MOST_CLUSTERS, len(answers.texts) // _QUESTIONS_PER_CLUSTER)
    return answers.cached("ratings", lambda: rate(answers, find_clusters(answers.texts, count)))


def _word_ratings(answers: AnswerMatrix) -> Ratings:
    return clustered_ratings(answers).model_copy(update={"words": fit_words(answers)})


def _rated_profiles(ratings: Ratings, answers: AnswerMatrix) -> Iterator[Sequence[Profile]]:
    profiles = [Profile(name=name) for name in answers.workers]
    return ([ratings.rated(profile, text) for profile in profiles] for text in answers.texts)


def _predictions(ratings: Ratings, answers: AnswerMatrix) -> tuple[Floats, Floats]:
    """[Q, W] each: the accuracy and the dollars that the ratings predict."""
    rated = [[profile.rating for profile in profiles] for profiles in _rated_profiles(ratings, answers)]
    accuracy = [[rating.accuracy if rating else 0.0 for rating in row] for row in rated]
    usd = [[rating.cost_usd if rating else 0.0 for rating in row] for row in rated]
    return np.array(accuracy), np.array(usd)


@dataclass(frozen=True)
class MethodResult:
    name: str
    score_Q: Floats
    """The method's score on each question. NaN if it was not measured on the question."""
    cost_Q: Floats
    chosen: FittedMethod | None
    """The method's choice on all questions, which can be served. None for a Conductor, which makes no choice."""
    is_team: bool = True
    is_cost_capped: bool = False
    """Whether the method is limited to a low price, as `StudyMethod` says."""
    note: str = ""
    """What a reader of the method's figures has to know."""

    @property
    def choice(self) -> str:
        return f"the {self.name}" if self.chosen is None else self.chosen.label


def folds_of(questions: int, seed: str) -> list[Ints]:
    """The numbers of the questions in each fold. The sizes of folds differ by at most one question."""
    order = list(range(questions))
    Random(f"study/folds/{seed}").shuffle(order)
    count = min(FOLDS, questions)
    return [np.array(sorted(order[fold::count])) for fold in range(count)]


def crossfit(answers: AnswerMatrix, methods: Iterable[StudyMethod], *, seed: str = "0") -> list[MethodResult]:
    """Measure methods on all questions. A method that has nothing to choose from, in any fold, is left out.

    Args:
        answers: the answers to at least two questions.
    """
    folds = folds_of(len(answers.texts), seed)
    trainings = [
        (select_questions(answers, questions_outside_fold(folds, fold)), select_questions(answers, fold))
        for fold in folds
    ]
    measured = []
    for method in methods:
        chosen = method.choose(answers)
        parts = [(method.choose(training), held_out) for training, held_out in trainings]
        if chosen is None or any(part is None for part, _ in parts):
            continue
        score_Q, cost_Q = np.empty(len(answers.texts)), np.empty(len(answers.texts))
        for (part, held_out), fold in zip(parts, folds, strict=True):
            assert part is not None
            score_Q[fold], cost_Q[fold] = part.figures(held_out)
        measured.append(
            MethodResult(method.name, score_Q, cost_Q, chosen, method.is_team, method.is_cost_capped)
        )
    return measured


def questions_outside_fold(folds: list[Ints], fold: Ints) -> Ints:
    return np.sort(np.concatenate([other for other in folds if other is not fold]))
