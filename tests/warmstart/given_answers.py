"""Answers of recorded workers, written down by hand: one row a question, one number an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.ratings.answers import MAX_ANSWERS, Answers

RIGHT = 0
NONE = -1


def given_answers(
    workers: Sequence[str], rows: Sequence[Sequence[int]], cost: Sequence[float] | Sequence[Sequence[float]]
) -> Answers:
    """Each worker asked once.

    Args:
        rows: for each question the answer of each worker: 0 is the right one, -1 is none.
        cost: dollars of an answer, by worker, or by question and worker.
    """
    answer_QWR = np.repeat(np.array(rows)[:, :, None], MAX_ANSWERS, axis=2)
    right_QWR = (answer_QWR == RIGHT).astype(float)
    return Answers(
        workers=tuple(workers),
        answer_QWR=answer_QWR,
        alone_QWR=right_QWR,
        voted_QWR=right_QWR,
        score_QW=right_QWR[:, :, 0],
        cost_QW=np.broadcast_to(np.array(cost, dtype=float), right_QWR.shape[:2]).copy(),
        samples=1,
        texts=tuple(f"question {number}" for number in range(len(rows))),
        families=("",) * len(rows),
    )


def pair_and_third(*, mends: bool) -> tuple[tuple[str, ...], list[list[int]]]:
    """ada and bob agree on half of the questions, and are right.

    Where they differ both are wrong, and cy and dee, who know nothing else, are right: dee four times in five, and cy
    always; or nobody is. dee never says what cy says where both are wrong.
    """
    rows = []
    for number in range(20):
        rows.append([RIGHT, RIGHT, 3, 4])
        rows.append([1, 2, RIGHT, RIGHT if number % 5 else 4] if mends else [1, 2, 3, 4])
    return ("ada", "bob", "cy", "dee"), rows


def pair_and_two_more() -> tuple[tuple[str, ...], list[list[int]]]:
    """ada and bob agree on half of the questions, and are right; there cy and dee make one mistake together.

    Where they differ bob is wrong, and of ada, cy and dee two are right, another one wrong each time: each alone is
    right on two such questions in three, and a vote of all three always.
    """
    rows = []
    for number in range(30):
        rows.append([RIGHT, RIGHT, 3, 3])
        three = [RIGHT] * 3
        three[number % 3] = 5
        rows.append([three[0], 2, *three[1:]])
    return ("ada", "bob", "cy", "dee"), rows
