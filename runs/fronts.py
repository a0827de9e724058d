"""What it is worth that votes stop early: five-fold on training questions, plans chosen on the other folds.

python runs/fronts.py RECORDING.parquet POOL.toml

Recorded. For each level of cost sensitivity the best committee of the kind, its accuracy and its dollars for
1,000 questions: where everybody is asked; the same committees where their votes stop; and committees that are priced
as votes that stop.
Two things rest on all folds, the question's own included, and neither on a verdict: which kinds of questions there are
(`podium rate` finds them in the wording), and what a worker costs on a kind, by which the cheapest is asked first.
"""

from __future__ import annotations

import asyncio
import sys

import numpy as np

from podium.orchestrator.team import open_pool
from podium.ratings.answers import (
    Floats,
    committee_accuracy,
    committee_cost,
    means_by,
    measurable,
    read_answers,
)
from podium.tasks import ALL, open_tasks
from podium.warmstart.committee_value import committees

FOLDS, TRUST = 5, 3.0
LEVELS = (0.0, 0.003, 0.006, 0.012, 0.018, 0.025, 0.035, 0.05, 0.065, 0.08, 0.1, 0.12)
"""Accuracy that an answer at the mean price must bring."""
_ANSWER = 0.001
"""Accuracy that each further answer must add."""


def main(recording: str, pool_file: str) -> None:
    pool = open_pool(pool_file)
    assert pool.ratings is not None, f"{pool_file} names no ratings"
    tasks = list(open_tasks(recording, "train", size=ALL, pool=pool))
    answers = asyncio.run(read_answers(tasks, measurable(pool, tasks)))
    kinds = [pool.ratings.cluster_of(text) for text in answers.texts]
    plans = list(committees(answers))
    right_QP = np.stack([committee_accuracy(answers, plan) for plan in plans], axis=1)
    price_QW = np.stack([means_by(kinds, answers.cost_QW, TRUST)[kind] for kind in kinds])
    full_QP, stopped_QP = (
        np.stack(
            [committee_cost(answers, plan, early_stop=stops, price_QW=price_QW) for plan in plans], axis=1
        )
        for stops in (False, True)
    )
    best = int(answers.accuracy.argmax())
    print(f"{recording}, {pool_file}: {len(kinds)} training questions, recorded")
    print(f"  {answers.workers[best]} alone {answers.accuracy[best]:.1%} ${1000 * answers.cost[best]:.2f}")
    print("  level: everybody asked | the same, votes stop | chosen for votes that stop")
    fold_Q = np.random.default_rng(0).permutation(len(kinds)) % FOLDS
    size_P = np.array([len(plan) for plan in plans])
    for level in LEVELS:
        chosen_Q, stopping_Q = (
            _chosen(kinds, fold_Q, right_QP=right_QP, cost_QP=cost_QP, size_P=size_P, level=level)
            for cost_QP in (full_QP, stopped_QP)
        )
        rows = np.arange(len(kinds))
        ways = ((chosen_Q, full_QP), (chosen_Q, stopped_QP), (stopping_Q, stopped_QP))
        shown = [
            f"{right_QP[rows, plan_Q].mean():.1%} ${1000 * cost_QP[rows, plan_Q].mean():.2f} "
            f"({cost_QP[rows, plan_Q].mean() / answers.cost[best]:.0%})"
            for plan_Q, cost_QP in ways
        ]
        print(f"  {level:<5} {' | '.join(shown)}")


def _chosen(
    kinds: list[str],
    fold_Q: np.ndarray,
    *,
    right_QP: Floats,
    cost_QP: Floats,
    size_P: np.ndarray,
    level: float,
) -> np.ndarray:
    """[Q]: for each question the committee that is worth most on its kind in the other folds."""
    plan_Q = np.zeros(len(kinds), dtype=int)
    for fold in range(FOLDS):
        known_Q = np.flatnonzero(fold_Q != fold)
        known_kinds = [kinds[q] for q in known_Q]
        accuracy, cost = (means_by(known_kinds, of[known_Q], TRUST) for of in (right_QP, cost_QP))
        for q in np.flatnonzero(fold_Q == fold):
            accuracy_P = accuracy.get(kinds[q], right_QP[known_Q].mean(axis=0))
            cost_P = cost.get(kinds[q], cost_QP[known_Q].mean(axis=0))
            usual = cost_P[size_P == 1].mean()
            plan_Q[q] = (accuracy_P - level * cost_P / usual - _ANSWER * size_P).argmax()
    return plan_Q


if __name__ == "__main__":
    main(*sys.argv[1:])
