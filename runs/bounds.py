"""What bounds a choice among recorded workers: five-fold on training questions, everything fitted on the other folds.

python runs/bounds.py RECORDING.parquet POOL.toml

Recorded. Each row may use more than the one before it: one plan for all questions, one for each kind, one for each kind
and length, one by the workers' accuracies on the kind alone (as if their errors had nothing to do with each other), and
a vote by gradient boosting that sees who gave which answer, the accuracies, and the size of the question.
"""

from __future__ import annotations

import asyncio
import re
import sys
from itertools import product

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from podium.rollout.answers import Answers, Floats, means_by, read_answers
from podium.tasks import ALL, open_tasks
from podium.train.warmstart.worth import committees, right
from podium.workers.pool import open_pool
from podium.workers.replay import ReplayWorker

FOLDS, TRUST = 5, 3.0


def main(recording: str, pool_file: str) -> None:
    pool = open_pool(pool_file)
    workers = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    answers = asyncio.run(read_answers(list(open_tasks(recording, "train", size=ALL, pool=pool)), workers))
    assert pool.ratings is not None, f"{pool_file} names no ratings"
    kind_Q = np.array([pool.ratings.kind_of(text) for text in answers.texts])
    fold_Q = np.random.default_rng(0).permutation(len(kind_Q)) % FOLDS
    plans = list(committees(answers))
    right_QP = np.stack([right(answers, plan) for plan in plans], axis=1)
    alone_P = np.array([len(plan) == 1 for plan in plans])
    length_Q = np.log([len(text) for text in answers.texts])
    rows: dict[str, Floats] = {}
    for fold in range(FOLDS):
        known, left = np.flatnonzero(fold_Q != fold), np.flatnonzero(fold_Q == fold)
        overall_P = right_QP[known].mean(axis=0)
        kinds = means_by(kind_Q[known].tolist(), right_QP[known], TRUST)
        workers_by_kind = means_by(kind_Q[known].tolist(), answers.score_QW[known], TRUST)
        boosted = _boosted(answers, kind_Q, known)
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
            rows.setdefault("boosted vote of all answers", np.zeros(len(kind_Q)))[q] = boosted(q)
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


def _boosted(answers: Answers, kind_Q: np.ndarray, known: np.ndarray):  # type: ignore[no-untyped-def, type-arg]
    """Of all answers to a question the one that looks best, learned on the known questions."""
    score_QW = answers.score_QW
    overall_W = score_QW[known].mean(axis=0)

    def candidates(q: int, *, without: bool) -> tuple[list[Floats], list[float]]:
        same = known[(kind_Q[known] == kind_Q[q]) & ((known != q) | (not without))]
        share_W = (score_QW[same].sum(axis=0) + 2 * TRUST * overall_W) / (len(same) + 2 * TRUST)
        text = answers.texts[q]
        size = [np.log(len(text)), len(re.findall(r"\d+", text))]
        given_WR = answers.answer_QWR[q, :, : answers.samples]
        made, verdicts = [], []
        for answer in np.unique(given_WR[given_WR >= 0]):
            by_W = (given_WR == answer).mean(axis=1)
            made.append(np.r_[by_W, share_W, by_W.sum(), by_W @ np.log(share_W / (1.01 - share_W)), size])
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
