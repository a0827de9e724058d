"""Routers that learn while they serve: LinUCB and Thompson sampling, over the workers' ratings.

Each question goes to one worker. A linear model for each worker predicts by how much its answers differ from what its
rating promises (Li et al. 2010, Agrawal and Goyal 2013). Old outcomes count less (Russac et al. 2019), so that a worker
that turned bad is left. An outcome may arrive late, in any order, or never. Whoever runs the planner calls `learn`: an
evaluation with its grades, a server with the outcomes of stored traces. This module stores nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from podium.errors import ConfigError
from podium.planners.answer_matrix import Floats
from podium.planners.baseline import plan_once
from podium.planners.rating_router import parse_accuracy_per_usd
from podium.planners.voting import Single
from podium.plugin_api.planners import (
    BaselineContext,
    OnlinePlanner,
    Plan,
    PlannerSpec,
    PlanRequest,
    Workflow,
)
from podium.trace import Trace
from podium.types import SEED_PREFIX_CHARS, Profile
from podium.workers.vote import VOTE
from podium_research.planners.routers import text_features

_UNRATED = 0.5
"""The expected accuracy of a worker without a rating."""
_RATED_PENALTY, _UNRATED_PENALTY = 2.0, 1.0
"""The ridge penalty: about as many outcomes must contradict a rating, or `_UNRATED`, to count as much as it does."""
_DISCOUNT = 0.94
"""Weight of a worker's outcome relative to its next one: after 11 outcomes it counts half."""
_CLUSTER = 0.5
"""The feature of the question's cluster, beside a constant 1: most of what an outcome says holds for all clusters."""
_EXPLORATION = 0.25
"""Standard deviations of the prediction. LinUCB adds them; Thompson sampling draws with them."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    """One answer that was judged."""

    words: Floats
    """[64]: of the question."""
    kind: str | None
    """The question's cluster. None if its worker had no rating."""
    worker: str
    surprise: float
    """Its score minus the expected one."""
    cost_usd: float


class OnlineRouter(OnlinePlanner):
    """Sends each question to the worker with the highest predicted score minus `per_usd` x dollars.

    If workers of the pool have ratings, it chooses among these, and its features are the question's cluster. Otherwise
    it chooses among all but the voting tool, by hashed words of the question. A worker without a rating costs what its
    answers cost so far.

    Args:
        per_usd: the score that a dollar has to buy.
        samples: whether it draws each prediction (Thompson sampling) instead of adding a bonus (LinUCB).
        workers: the names to choose from. Default: all that the above says.
    """

    replayed_outcomes = 200
    """Outcomes that it keeps at most, the latest of all workers. So a worker that was left is tried again once its own
    are no longer among them."""

    def __init__(
        self, per_usd: float = 0.0, *, samples: bool = False, workers: Sequence[str] | None = None
    ) -> None:
        self.per_usd = per_usd
        self.samples = samples
        self.workers = workers
        self._evidence: deque[_Evidence] = deque(maxlen=self.replayed_outcomes)

    @property
    def name(self) -> str:
        return f"{'thompson' if self.samples else 'linucb'}:{self.per_usd:.12g}"

    async def plan(self, request: PlanRequest) -> Plan:
        """A plan of one step, or acceptance in a later round; `ConfigError` if there is no worker to choose."""
        if request.earlier_rounds:
            return plan_once(request, Workflow(()))
        pool = [profile for profile in request.pool if self.workers is None or profile.name in self.workers]
        rated = [profile for profile in pool if profile.rating is not None]
        workers = rated or [profile for profile in pool if profile.name != VOTE]
        if not workers:
            raise ConfigError(
                f"The planner {self.name} chooses among workers, and this pool has none for it."
            )
        return await Single(workers[self._choose(request, workers)].name).plan(request)

    def learn(self, trace: Trace, score: float) -> None:
        """Take in the score, in [0, 1], of a trace's answer. Call it in the order in which the questions were asked.

        A trace whose plan is not one step teaches nothing, nor does one whose question no worker of its pool answered.
        """
        workflow = trace.rounds[0].workflow if trace.rounds else None
        if workflow is None or len(workflow.steps) != 1:
            return
        answered_by = {span.answered_by for span in trace.rounds[0].spans}
        worker = next((profile for profile in trace.pool if profile.name in answered_by), None)
        if worker is None:
            return
        kind = None if worker.rating is None else worker.rating.cluster
        surprise = score - _expected(worker)
        self._evidence.append(
            _Evidence(text_features(trace.question.text), kind, worker.name, surprise, trace.uncached_usd)
        )

    def forget(self) -> None:
        """Forget all outcomes."""
        self._evidence.clear()

    def _choose(self, request: PlanRequest, workers: Sequence[Profile]) -> int:
        """The number, in `workers`, of the chosen one."""
        rating, text = workers[0].rating, request.question.text
        x_ND, x_D = self._by_cluster(rating.cluster) if rating is not None else self._by_words(text)
        surprise_N = np.array([evidence.surprise for evidence in self._evidence])
        penalty = np.eye(len(x_D)) * (_UNRATED_PENALTY if rating is None else _RATED_PENALTY)
        # Another outcome gives another draw for the same question.
        outcomes = f"{np.arange(len(x_ND)) @ surprise_N:.9g}"
        random = Random(f"thompson/{request.seed}/{outcomes}/{text[:SEED_PREFIX_CHARS]}")
        worth = []
        for worker in workers:
            own_N = np.array([evidence.worker == worker.name for evidence in self._evidence], dtype=bool)
            x_nD = x_ND[own_N]
            weight_n = _DISCOUNT ** np.arange(len(x_nD))[::-1]
            matrix_DD = penalty + x_nD.T @ (weight_n[:, None] * x_nD)
            direction_D = np.linalg.solve(matrix_DD, x_D)
            surprise = direction_D @ (x_nD.T @ (weight_n * surprise_N[own_N]))
            deviations = random.gauss(0, 1) if self.samples else 1.0
            bonus = _EXPLORATION * deviations * np.sqrt(x_D @ direction_D)
            worth.append(_expected(worker) + surprise + bonus - self.per_usd * self._cost(worker))
        return int(np.argmax(worth))

    def _by_cluster(self, kind: str) -> tuple[Floats, Floats]:
        """Features of the outcomes, [N, D], and of a question of this cluster, [D]: a constant 1, and the cluster."""
        kinds = [evidence.kind for evidence in self._evidence]
        columns = dict.fromkeys((*kinds, kind))
        x_MD = np.array([[1.0, *(_CLUSTER * (other == row) for other in columns)] for row in (*kinds, kind)])
        return x_MD[:-1], x_MD[-1]

    def _by_words(self, text: str) -> tuple[Floats, Floats]:
        """Features of the outcomes, [N, D], and of this question, [D]."""
        x_D = text_features(text)
        return np.array([evidence.words for evidence in self._evidence]).reshape(-1, len(x_D)), x_D

    def _cost(self, worker: Profile) -> float:
        """Dollars of an answer; 0 for a worker that was never asked."""
        if worker.rating is not None:
            return worker.rating.cost_usd
        paid = [evidence.cost_usd for evidence in self._evidence if evidence.worker == worker.name]
        return sum(paid) / max(1, len(paid))


def _expected(worker: Profile) -> float:
    return _UNRATED if worker.rating is None else worker.rating.accuracy


def _open_linucb(context: BaselineContext) -> OnlineRouter:
    return OnlineRouter(parse_accuracy_per_usd(context.argument, f"linucb:{context.argument}", "linucb:0"))


def _open_thompson(context: BaselineContext) -> OnlineRouter:
    return OnlineRouter(
        parse_accuracy_per_usd(context.argument, f"thompson:{context.argument}", "thompson:0"), samples=True
    )


LINUCB = PlannerSpec("linucb:PER_USD", _open_linucb, team_only=True)
THOMPSON = PlannerSpec("thompson:PER_USD", _open_thompson, team_only=True)
