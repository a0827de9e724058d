"""Smoothie (Guha et al. 2024, arXiv 2412.04692): the answer that is most like the others, without labels.

An answer is its text's vector. Seen as the true vector with noise of a worker's own size, three answers tell the noise
of each from their distances. This is the paper's local form with one neighbour, the question itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.planners.answer_matrix import Floats
from podium.planners.voting import Committee
from podium.plugin_api.planners import Acceptance, BaselineContext, Plan, Planner, PlannerSpec, PlanRequest
from podium.workflow import render
from podium_research.planners.predictors import Vectors, ngram_vectors


def qualities(vector_ND: Floats) -> Floats:
    """[N]: theta = D / (2 delta) of each of three or more answers, where delta is the mean, over pairs of the others,
    of (|i - j|^2 + |i - k|^2 - |j - k|^2) / 2. The least noisy answer has the highest. A delta of 0 counts as tiny."""
    count, size = vector_ND.shape
    apart_NN = ((vector_ND[:, None] - vector_ND[None]) ** 2).sum(axis=2)
    to_others_N = apart_NN.sum(axis=1)
    among_others_N = apart_NN.sum() / 2 - to_others_N
    pairs = (count - 1) * (count - 2) / 2
    delta_N = ((count - 2) * to_others_N - among_others_N) / (2 * pairs)
    quality_N: Floats = size / (2 * np.maximum(delta_N, 1e-12))
    return quality_N


@dataclass(frozen=True)
class Smoothie(Planner):
    """Each of `workers` answers the whole question; then the answer of the highest quality is accepted.

    With fewer than three answers, and with one round, a vote decides.
    """

    rounds = 2

    workers: tuple[str, ...]
    vectors: Vectors = ngram_vectors
    """A function from answers to their vectors."""

    @property
    def name(self) -> str:
        return f"smoothie:{'+'.join(self.workers)}"

    async def plan(self, request: PlanRequest) -> Plan:
        """First the answers and a vote; in round 2 an acceptance. `ConfigError` if the pool lacks a worker."""
        if not request.earlier_rounds:
            return await Committee(self.workers).plan(request)
        responses = request.earlier_rounds[0].responses[: len(self.workers)]
        return Plan(render(Acceptance()), Acceptance(), accepted_step=self._best(responses))

    def _best(self, responses: Sequence[str | None]) -> tuple[int, int] | None:
        answered = [(step, text) for step, text in enumerate(responses) if text]
        if len(answered) < 3:
            return None
        theta_N = qualities(self.vectors([text for _, text in answered]))
        return 0, answered[int(theta_N.argmax())][0]


def _open(context: BaselineContext) -> Smoothie:
    return Smoothie(context.workers(context.argument))


BASELINE = PlannerSpec(
    "smoothie:A+B+C",
    _open,
    votes=True,
    team_only=True,
)
