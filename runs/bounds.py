"""What bounds a choice among recorded workers: five-fold on training questions.

python runs/bounds.py RECORDING.parquet POOL.toml

Recorded. Plans and models are fitted on the other folds; which kinds of questions there are rests on all of them, but
on no verdict (`podium rate` finds them in the wording). Each row may use more than the one before it: one plan for all
questions, one for each kind, one for each kind and length, one by the workers' accuracies on the kind alone (as if
their errors had nothing to do with each other), one that may also ask a third worker where a pair disagrees, and two
votes by gradient boosting: one sees who gave which answer, the accuracies, and the size of the question; the other also
reads how the responses are written.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from podium.orchestrator.team import open_pool
from podium.ratings.answers import (
    Answers,
    Floats,
    committee_accuracy,
    means_by,
    question_messages,
    read_answers,
)
from podium.tasks import ALL, open_tasks
from podium.warmstart.committee_value import committees
from podium.workers.base import Request
from podium.workers.replay import ReplayWorker

FOLDS, TRUST = 5, 3.0
MANNERS = [
    re.compile(words)
    for words in (
        "however|wait|mistake|incorrect|not valid",
        "let's|try",
        "therefore|final answer",
        "<answer>",
        r"\n",
    )
]
"""What a response may show besides its answer."""


def main(recording: str, pool_file: str) -> None:
    pool = open_pool(pool_file)
    workers = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    answers = asyncio.run(read_answers(list(open_tasks(recording, "train", size=ALL, pool=pool)), workers))
    assert pool.ratings is not None, f"{pool_file} names no ratings"
    kind_Q = np.array([pool.ratings.cluster_of(text) for text in answers.texts])
    fold_Q = np.random.default_rng(0).permutation(len(kind_Q)) % FOLDS
    manner_QWRF = asyncio.run(_manners(answers.texts, workers, answers.samples))
    plans = list(committees(answers))
    right_QP = np.stack([committee_accuracy(answers, plan) for plan in plans], axis=1)
    cascade_QC = np.column_stack([right_QP, *_cascades(answers)])
    alone_P = np.array([len(plan) == 1 for plan in plans])
    length_Q = np.log([len(text) for text in answers.texts])
    rows: dict[str, Floats] = {}
    for fold in range(FOLDS):
        known, left = np.flatnonzero(fold_Q != fold), np.flatnonzero(fold_Q == fold)
        overall_P = right_QP[known].mean(axis=0)
        kinds = means_by(kind_Q[known].tolist(), right_QP[known], TRUST)
        workers_by_kind = means_by(kind_Q[known].tolist(), answers.score_QW[known], TRUST)
        cascades = means_by(kind_Q[known].tolist(), cascade_QC[known], TRUST)
        boosted = _boosted(answers, kind_Q, known)
        read = _boosted(answers, kind_Q, known, manner_QWRF)
        for q in left:
            kind = kind_Q[q]
            same = known[kind_Q[known] == kind]
            near = (
                np.exp(-0.5 * ((length_Q[same] - length_Q[q]) / (length_Q[same].std() + 0.05)) ** 2)
                if len(same)
                else same
            )
            share_W = workers_by_kind.get(kind, answers.score_QW[known].mean(axis=0))
            chosen = {
                "best worker for all": np.where(alone_P, overall_P, 0),
                "best plan for all": overall_P,
                "best plan of the kind": kinds.get(kind, overall_P),
                "best plan of the kind and length": (near @ right_QP[same] + TRUST * overall_P)
                / (near.sum() + TRUST),
                "by accuracies on the kind alone": np.array(
                    [_independent(share_W[list(plan)]) for plan in plans]
                )
                if answers.samples == 1
                else overall_P,
            }
            for label, value_P in chosen.items():
                rows.setdefault(label, np.zeros(len(kind_Q)))[q] = right_QP[q, value_P.argmax()]
            cascade = cascades.get(kind, cascade_QC[known].mean(axis=0)).argmax()
            others = {
                "best plan or cascade of the kind": cascade_QC[q, cascade],
                "boosted vote of all answers": boosted(q),
                "the same, reading the responses": read(q),
            }
            for label, value in others.items():
                rows.setdefault(label, np.zeros(len(kind_Q)))[q] = value
    print(f"{recording}, {pool_file}: {len(kind_Q)} training questions, recorded")
    for label, right_Q in rows.items():
        error = 1.96 * right_Q.std() / np.sqrt(len(right_Q))
        print(f"  {label:34} {right_Q.mean():.1%} ± {error:.1%}")
    print(f"  {'any answer right (a bound)':34} {answers.voted_QWR.max(axis=(1, 2)).mean():.1%}")


def _independent(share_M: Floats) -> float:
    """How often a committee wins whose wrong answers all differ: two agree, or the first is right where none do."""
    found = 0.0
    for hits in product((0, 1), repeat=len(share_M)):
        if sum(hits) >= 2 or hits[0]:
            found += float(np.prod(np.where(hits, share_M, 1 - share_M)))
    return found


def _cascades(answers: Answers) -> Iterator[Floats]:
    """[Q] each: how right a pair is whose disagreements a third worker decides alone."""
    workers = range(len(answers.workers))
    for pair in combinations(workers, 2):
        agreed = [turn.unanimous(pair) for turn in answers.rotations]
        for then in set(workers) - set(pair):
            yield np.mean(
                [
                    np.where(same, turn.voted_QWR[:, pair[0], 0], turn.alone_QWR[:, then, 0])
                    for same, turn in zip(agreed, answers.rotations, strict=True)
                ],
                axis=0,
            )


async def _manners(texts: Sequence[str], workers: Sequence[ReplayWorker], samples: int) -> Floats:
    """[Q, W, R, F]: of each response its length, and how often it doubts, decides or marks an answer, as logarithms."""
    counted_QWRF = np.zeros((len(texts), len(workers), samples, 1 + len(MANNERS)))
    for q, text in enumerate(texts):
        for w, worker in enumerate(workers):
            for r in range(samples):
                said = (await worker.answer(Request(question_messages(text), seed="", repeat=r))).text.lower()
                counted_QWRF[q, w, r] = [len(said), *(len(manner.findall(said)) for manner in MANNERS)]
    found: Floats = np.log1p(counted_QWRF)
    return found


def _boosted(answers: Answers, kind_Q: np.ndarray, known: np.ndarray, manner_QWRF: Floats | None = None):  # type: ignore[no-untyped-def, type-arg]
    """Of all answers to a question the one that looks best, learned on the known questions."""
    score_QW = answers.score_QW
    overall_W = score_QW[known].mean(axis=0)
    if (
        manner_QWRF is not None
    ):  # What is unusual for the worker on questions of the kind, and what is there at all.
        usual_KWF = {
            kind: manner_QWRF[known[kind_Q[known] == kind]].mean(axis=(0, 2)) for kind in set(kind_Q[known])
        }
        everywhere_WF = manner_QWRF[known].mean(axis=(0, 2))

    def candidates(q: int, *, without: bool) -> tuple[list[Floats], list[float]]:
        same = known[(kind_Q[known] == kind_Q[q]) & ((known != q) | (not without))]
        share_W = (score_QW[same].sum(axis=0) + 2 * TRUST * overall_W) / (len(same) + 2 * TRUST)
        text = answers.texts[q]
        size = [np.log(len(text)), len(re.findall(r"\d+", text))]
        given_WR = answers.answer_QWR[q, :, : answers.samples]
        made, verdicts = [], []
        for answer in np.unique(given_WR[given_WR >= 0]):
            by_W = (given_WR == answer).mean(axis=1)
            manner = np.zeros(0)
            if manner_QWRF is not None:
                usual_WF = usual_KWF.get(kind_Q[q], everywhere_WF)
                given = given_WR == answer
                unusual_WRF = manner_QWRF[q] - usual_WF[:, None]
                manner = np.r_[manner_QWRF[q][given].mean(axis=0), unusual_WRF[given].mean(axis=0)]
            made.append(
                np.r_[by_W, share_W, by_W.sum(), by_W @ np.log(share_W / (1.01 - share_W)), size, manner]
            )
            verdicts.append(float(answers.voted_QWR[q, :, : answers.samples][given_WR == answer][0]))
        return made, verdicts

    drawn = [candidates(q, without=True) for q in known]
    model = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.06, max_leaf_nodes=12, min_samples_leaf=40
    )
    model.fit(
        np.array([x for made, _ in drawn for x in made]), np.array([y > 0.5 for _, ys in drawn for y in ys])
    )

    def chosen(q: int) -> float:
        made, verdicts = candidates(q, without=False)
        return verdicts[int(model.predict_proba(np.array(made))[:, 1].argmax())] if made else 0.0

    return chosen


if __name__ == "__main__":
    main(*sys.argv[1:])
