"""Answers that are judged by agreement: each sample by the same sample of the other workers."""

from __future__ import annotations

import pytest

from podium.evals.study.judges import by_agreement
from podium.evals.study.result import Bounds
from podium.planners.answer_matrix import AnswerMatrix, MeasuredAnswer


def test_second_answers_are_judged_by_agreement_of_their_own() -> None:
    said = {"ada": ["12", "12", "1"], "bob": ["11", "11", "1"], "cy": ["11", "11", "2"]}
    answers = {
        name: [[MeasuredAnswer(answer, 0.0, 0.0) for answer in samples] for samples in row]
        for name, row in said.items()
    }
    judged = by_agreement(AnswerMatrix.of(["a", "b", "c"], answers))
    assert judged.alone_QWR[0].tolist() == [[1, 0], [1, 0.5], [1, 0.5]]
    # In the last question each has one answer: 1 agrees with one of two others, and 2 with none.
    assert judged.score_QW.tolist() == [[0.5, 0.75, 0.75], [0.5, 0.75, 0.75], [0.5, 0.5, 0]]
    bounds = Bounds.of(judged)
    assert (bounds.repeated, bounds.any_right_of_repeated) == (2, 1.0)
    assert bounds.again is not None
    assert bounds.again.mean == pytest.approx(1 / 3)
