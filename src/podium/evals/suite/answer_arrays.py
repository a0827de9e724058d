"""The kept answers of single workers as arrays, from which votes, cascades and routers are chosen without a further
call. `podium.ratings.answers` computes with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from podium.evals.suite.results import GradedAnswer
from podium.ratings.answers import NO_ANSWER, Answers
from podium.reading.answer import final_answer
from podium.reading.same_answer import answer_key
from podium.workers.tool import is_result


def answer_arrays(given: Mapping[str, Sequence[Sequence[GradedAnswer]]]) -> Answers:
    """The answers of each worker, by name: to each question one or more, to the same questions in the same order.

    A vote that reports a worker's answer is as right as the worker.
    """
    questions = list(zip(*given.values(), strict=True))
    own_QW = np.array([[len(answers) for answers in row] for row in questions])
    samples = int(own_QW.max())
    answer_QWR = np.full((*own_QW.shape, samples), NO_ANSWER)
    right_QWR = np.zeros(answer_QWR.shape)
    score_QW, cost_QW = np.zeros(own_QW.shape), np.zeros(own_QW.shape)
    for q, row in enumerate(questions):
        numbers: dict[str, int] = {}
        for w, answers in enumerate(row):
            score_QW[q, w] = fmean(answer.grade.correct for answer in answers)
            cost_QW[q, w] = fmean(answer.trace.uncached_usd for answer in answers)
            for r in range(samples):
                answer = answers[r % len(answers)]  # One with fewer samples starts again from number 0.
                right_QWR[q, w, r] = answer.grade.correct
                answer_QWR[q, w, r] = _number(answer.trace.answer, numbers)
    return Answers(
        workers=tuple(given),
        answer_QWR=answer_QWR,
        alone_QWR=right_QWR,
        voted_QWR=np.where(answer_QWR == NO_ANSWER, 0.0, right_QWR),
        score_QW=score_QW,
        cost_QW=cost_QW,
        samples=samples,
        texts=tuple(row[0][0].trace.question.text for row in questions),
        own_samples=tuple(own_QW.max(axis=0).tolist()),
        own_samples_QW=None if (own_QW == samples).all() else own_QW,
    )


def _number(response: str | None, numbers: dict[str, int]) -> int:
    """The number of a response's answer among those to its question; equal answers have equal numbers."""
    found = None if response is None or not is_result(response) else final_answer(response)
    return NO_ANSWER if found is None else numbers.setdefault(answer_key(found), len(numbers))
