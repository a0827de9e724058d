"""Pools made of chance, as arrays: one in which no team helps, and one in which teams do."""

from __future__ import annotations

import numpy as np

from podium.planners.answer_matrix import AnswerMatrix

RIGHT, WRONG = 0, 1


def _answers(answer_QWR, cost_QW) -> AnswerMatrix:
    questions, workers, samples = answer_QWR.shape
    right_QWR = (answer_QWR == RIGHT).astype(float)
    wide = np.concatenate([answer_QWR] * 5, axis=2)[:, :, : max(5, samples)]
    return AnswerMatrix(
        workers=tuple(f"w{number}" for number in range(workers)),
        answer_QWR=wide,
        alone_QWR=(wide == RIGHT).astype(float),
        voted_QWR=(wide == RIGHT).astype(float),
        score_QW=right_QWR.mean(axis=2),
        cost_QW=cost_QW,
        samples=samples,
        texts=tuple(f"{number}" for number in range(questions)),
    )


def nothing_helps(seed: int, *, questions: int = 120, workers: int = 4, samples: int = 1) -> AnswerMatrix:
    """Every worker knows the same half of the questions. On the others it tosses a coin between two answers.

    So all are right on 75 %, any vote, cascade or router too, and yet some worker is right on nearly all.
    """
    rng = np.random.default_rng([1, seed])
    tossed = rng.integers(0, 2, size=(questions, workers, samples))
    known = np.arange(questions)[:, None, None] % 2 == 0
    return _answers(np.where(known, RIGHT, tossed), rng.uniform(0.9, 1.1, size=(questions, workers)) / 1000)


def votes_help(seed: int, *, questions: int = 300, workers: int = 5, right: float = 0.7) -> AnswerMatrix:
    """The workers err independently, and seldom in the same way."""
    rng = np.random.default_rng([2, seed])
    wrong = rng.integers(1, 20, size=(questions, workers, 1))
    knows = rng.random((questions, workers, 1)) < right
    return _answers(np.where(knows, RIGHT, wrong), np.full((questions, workers), 0.001))


def cheap_is_as_good(seed: int, *, questions: int = 300) -> AnswerMatrix:
    """A dear worker and a cheap one, which nearly always say the same, and a weak one."""
    rng = np.random.default_rng([3, seed])
    dear = (rng.random(questions) < 0.2).astype(int)
    cheap = np.where(np.arange(questions) == int(dear.argmin()), WRONG, dear)
    weak = (rng.random(questions) < 0.6).astype(int)
    answer_QW = np.stack([dear, cheap, weak], axis=1)
    return _answers(answer_QW[:, :, None], np.tile([0.01, 0.001, 0.0001], (questions, 1)))
