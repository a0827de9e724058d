"""Cross-fitting: each question is scored by methods that made their choices on the other questions.

The questions are divided into folds. For each fold, every method makes its choice on the other folds and is scored on
this fold. So each question counts once, and no choice is scored on a question that it was made on. The figure of a
method is the mean over its choices for all folds. The choice that is served is made in the same way on all questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import numpy as np

from podium.evals.study.methods import FittedMethod, StudyMethod
from podium.planners.answers import AnswerMatrix, Floats, Ints, select_questions

FOLDS = 5


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
