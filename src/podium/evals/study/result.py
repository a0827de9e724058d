"""The result of a study: one JSON file, from which its report is written."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from podium.evals.json_file import JsonFile
from podium.evals.stats import Interval, accuracy_interval
from podium.evals.study.decision import StudyDecision
from podium.evals.study.judges import NearMisses
from podium.evals.study.methods import best_single
from podium.evals.study.questions import JudgedBy
from podium.planners.answer_matrix import AnswerMatrix, Floats, select_questions
from podium.types import FrozenModel

RESULT = "study.json"


class Bounds(FrozenModel):
    """The most that the pool's diversity allows: how often any worker is right, and how much of that is luck.

    If several workers guess, one of them is often right by luck, and no planner can know which. Second answers
    distinguish luck from skill: for each question a worker is picked whose first answer was right, and its second
    answer counts.
    """

    any_right: Interval
    """The share of questions to which any worker's first answer was right. It bounds a planner that chooses a worker
    and knows which answers are right by luck."""
    none_right: float
    repeated: int = 0
    """How many questions every worker answered twice. If there are fewer than two, the next figures are None."""
    any_right_of_repeated: float | None = None
    again: Interval | None = None
    """On the repeated questions, how often a worker whose first answer was right is right again. It bounds a planner
    that knows which worker is good at which question, but not which answers are right by luck."""
    best_of_repeated: float | None = None

    @classmethod
    def of(cls, answers: AnswerMatrix) -> Bounds:
        """The bounds of the workers of these answers."""
        any_Q = answers.alone_QWR[:, :, 0].max(axis=1)
        overall = cls(any_right=_share(any_Q), none_right=float(1 - any_Q.mean()))
        own_QW = answers.own_samples_QW
        least_Q = np.full(len(any_Q), answers.samples) if own_QW is None else own_QW.min(axis=1)
        twice = np.flatnonzero(least_Q >= 2)
        if len(twice) < 2:
            return overall
        repeated, best = select_questions(answers, twice).alone_QWR, best_single(answers)
        first_QW, second_QW = repeated[:, :, 0], repeated[:, :, 1]
        # If no worker was right, an oracle has no reason to leave the best worker.
        lucky_Q = [np.flatnonzero(row) if row.any() else np.array([best]) for row in first_QW]
        again_Q = np.array([second[lucky].mean() for lucky, second in zip(lucky_Q, second_QW, strict=True)])
        return overall.model_copy(
            update={
                "repeated": len(twice),
                "any_right_of_repeated": float(first_QW.max(axis=1).mean()),
                "again": _share(again_Q),
                "best_of_repeated": float(repeated[:, best, :2].mean()),
            }
        )


def _share(score_Q: Floats) -> Interval:
    return accuracy_interval(score_Q.tolist(), rollouts=len(score_Q))


class Study(StudyDecision, JsonFile):
    description: ClassVar[str] = "a study"

    tasks: str
    questions: int
    """Questions that every worker answered."""
    judged_by: JudgedBy
    judge: str | None = None
    """The worker that judged, perhaps only where users did not. None if no worker did."""
    workers: tuple[str, ...]
    bounds: Bounds
    misjudged: NearMisses = NearMisses()
    """Right answers that graders of texts may have judged wrong."""
    spent_usd: float = 0.0
    recorded: bool = False
    """Whether nobody was paid, so that the dollars are those that the answers would have cost."""
    replayed: tuple[str, ...] = ()
    """The workers that answered from a recording."""
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The settings files that serve the recommendation and, if it differs, the cheaper choice."""
