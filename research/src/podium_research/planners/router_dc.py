"""RouterDC (Chen et al. 2024, arXiv 2409.19886): contrastive learning of a router, over vectors that stay as they are.

A worker has a vector, a linear head maps a question's vector to the same space, and the router follows the cosine.
Two losses train both: a question is drawn to its best workers and away from its worst ones, and to a question of its
own cluster and away from questions of others. The paper trains its encoder too (mDeBERTa-v3-base); here only the head
and the workers' vectors are trained, with a larger step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.planners.answer_matrix import Floats
from podium_research.planners.adam import Adam

Ints = npt.NDArray[np.int64]
_DIMENSIONS = 64
_BEST = _WORST = 3
_NEGATIVES = 3
_CLUSTERS = 5
_BATCH = 64
_STEPS = 1000
_RATE = 0.005


def fit_router_dc(x_QD: Any, score_QT: Floats) -> Callable[[Any], Floats]:
    """Train the head and the vectors of T workers.

    Args:
        x_QD: vectors of Q questions.
        score_QT: each worker's score, in [0, 1].

    Returns:
        From vectors of N questions to [N, T] cosines. They order the workers; they are no probabilities.
    """
    from sklearn.cluster import KMeans  # noqa: PLC0415 - an optional extra

    rng = np.random.default_rng(0)
    clusters = min(_CLUSTERS, len(x_QD))
    cluster_Q = KMeans(clusters, n_init=4, random_state=0).fit_predict(x_QD)
    head_DK = rng.normal(size=(x_QD.shape[1], _DIMENSIONS)) / np.sqrt(x_QD.shape[1])
    worker_TK = rng.normal(size=(score_QT.shape[1], _DIMENSIONS))
    adam = Adam((head_DK, worker_TK), _RATE)
    for _ in range(_STEPS):
        batch = rng.permutation(len(x_QD))[:_BATCH]
        _, gradients = loss_and_gradients(
            head_DK, worker_TK, x_QD[batch], score_QT[batch], others(cluster_Q[batch], rng)
        )
        adam.step(gradients)
    return lambda x_ND: _unit(x_ND @ head_DK)[0] @ _unit(worker_TK)[0].T


def others(cluster_B: Ints, rng: np.random.Generator) -> Ints:
    """[P, 2 + _NEGATIVES]: a question, one of its cluster, and questions of others; only where there are such."""
    rows = []
    for b, cluster in enumerate(cluster_B):
        same = np.flatnonzero((cluster_B == cluster) & (np.arange(len(cluster_B)) != b))
        different = np.flatnonzero(cluster_B != cluster)
        if len(same) and len(different):
            rows.append([b, rng.choice(same), *rng.choice(different, _NEGATIVES)])
    return np.array(rows, dtype=np.int64).reshape(-1, 2 + _NEGATIVES)


def loss_and_gradients(
    head_DK: Floats, worker_TK: Floats, x_BD: Floats, score_BT: Floats, others_PM: Ints
) -> tuple[float, tuple[Floats, Floats]]:
    """The sum of both losses, each a mean over its questions, and the gradients of the head and the workers' vectors.

    A best worker without a right answer draws nothing; a worst one with a score over 0.5 repels nothing.
    """
    z_BK, length_B1 = _unit(x_BD @ head_DK)
    e_TK, length_T1 = _unit(worker_TK)
    cosine_BT = z_BK @ e_TK.T
    d_cosine_BT, loss = np.zeros_like(cosine_BT), 0.0
    order_BT = np.argsort(-score_BT, axis=1, kind="stable")
    most = score_BT.shape[1] - 1
    for b, order in enumerate(order_BT):
        worst = [t for t in order[::-1][: min(_WORST, most)] if score_BT[b, t] <= 0.5]
        for best in order[: min(_BEST, most)]:
            among = [best, *(t for t in worst if t != best)]
            if score_BT[b, best] <= 0 or len(among) == 1:
                continue
            share = _softmax(cosine_BT[b, among])
            loss -= float(np.log(share[0])) / len(x_BD)
            share[0] -= 1
            d_cosine_BT[b, among] += share / len(x_BD)
    d_z_BK, d_e_TK = d_cosine_BT @ e_TK, d_cosine_BT.T @ z_BK
    for own, *rest in others_PM:
        share = _softmax(z_BK[rest] @ z_BK[own])
        loss -= float(np.log(share[0])) / len(others_PM)
        share[0] -= 1
        d_z_BK[own] += share @ z_BK[rest] / len(others_PM)
        np.add.at(d_z_BK, rest, share[:, None] * z_BK[own] / len(others_PM))
    d_u_BK = (d_z_BK - z_BK * (z_BK * d_z_BK).sum(axis=1, keepdims=True)) / length_B1
    d_worker_TK = (d_e_TK - e_TK * (e_TK * d_e_TK).sum(axis=1, keepdims=True)) / length_T1
    return loss, (x_BD.T @ d_u_BK, d_worker_TK)


def _unit(rows: Floats) -> tuple[Floats, Floats]:
    """The rows with length 1, and their lengths, [N, 1]."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows / lengths, lengths


def _softmax(values: Floats) -> Floats:
    odds = np.exp(values - values.max())
    shares: Floats = odds / odds.sum()
    return shares
