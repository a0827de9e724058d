"""Routers: planners that read the question's text and send the whole question to one worker or committee.

A learned rule is trained on scored questions before the comparison; LinUCB (Li et al. 2010) learns while it runs.
Routers that count dollars are in `podium.baselines.learned_routers`.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.baselines.baseline import Floats, Vectors
from podium.baselines.plans import plan_once
from podium.baselines.predictors import Method, fit
from podium.baselines.voting import Committee, Single
from podium.planner import Plan, PlanRequest
from podium.workers.vote import VOTE
from podium.workflow import Workflow

RoutingRule = Callable[[str], str | Committee]
"""From a question's text to the name of a worker, or to a committee."""


@dataclass(frozen=True, slots=True)
class Router:
    """Sends the whole question to the worker or committee that `rule` returns.

    Make the rule on other questions than those of the comparison.
    """

    tools = (VOTE,)

    name: str
    rule: RoutingRule

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan; `ConfigError` when the pool has no such worker."""
        target = self.rule(request.question.text)
        return await (Single(target) if isinstance(target, str) else target).plan(request)


def learn_router(
    method: Method,
    texts: Sequence[str],
    score_QW: Floats,
    workers: Sequence[str],
    *,
    vectors: Vectors | None = None,
    neighbours: int = 20,
) -> RoutingRule:
    """Train a rule that chooses the worker with the highest predicted score, whatever it costs.

    Args:
        texts: Q questions.
        score_QW: the score of each worker's answer to each question, in [0, 1].
        vectors: an encoder; None: hashed n-grams.
        neighbours: for "neighbours", how many of the nearest questions predict a score.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    predict = fit(method, texts, score_QW, vectors=vectors, neighbours=neighbours)
    known: dict[str, str] = {}

    def rule(text: str) -> str:
        if text not in known:
            known[text] = workers[int(predict([text])[0].argmax())]
        return known[text]

    return rule


Verdict = Callable[[PlanRequest, str], Awaitable[float]]
"""(request, worker) -> the score of the worker's answer to this request, in [0, 1]."""
_BANDIT_FEATURES = 64


class LinUCB:
    """A ridge regression for each worker, with an exploration bonus.

    It starts without data, so its accuracy includes the mistakes that it makes while it learns.

    Args:
        workers: names of the workers to choose from.
        verdict: called once for each question, only with the worker that was chosen.
        exploration: how many standard deviations of the prediction are added to each worker's expected score.
    """

    name = "linucb"

    def __init__(self, workers: Sequence[str], verdict: Verdict, *, exploration: float = 0.5) -> None:
        self.workers = tuple(workers)
        self.verdict = verdict
        self.exploration = exploration
        self._inverse = np.stack([np.eye(_BANDIT_FEATURES)] * len(self.workers))
        self._learned: set[str] = set()
        self._moment = np.zeros((len(self.workers), _BANDIT_FEATURES))

    async def plan(self, request: PlanRequest) -> Plan:
        """A plan of one step, or acceptance in a later round; `ConfigError` if the pool lacks the worker."""
        if request.outcomes:
            return plan_once(request, Workflow(()))
        text = request.question.text
        x = text_features(text)
        chosen = self._choose(x)
        plan = await Single(self.workers[chosen]).plan(request)
        if text not in self._learned:
            self._learned.add(text)
            self._learn(chosen, x, await self.verdict(request, self.workers[chosen]))
        return plan

    def _choose(self, x: Floats) -> int:
        shared = self._inverse @ x
        expected = np.einsum("wf,wf->w", shared, self._moment)
        return int(np.argmax(expected + self.exploration * np.sqrt(shared @ x)))

    def _learn(self, worker: int, x: Floats, verdict: float) -> None:
        gain = self._inverse[worker] @ x
        self._inverse[worker] -= np.outer(gain, gain) / (1 + gain @ x)
        self._moment[worker] += verdict * x


def text_features(text: str) -> Floats:
    """[64]: signed hashes of words and pairs of words, scaled to length 1; the last feature is a constant 1."""
    x = np.zeros(_BANDIT_FEATURES)
    words = text.casefold().split()
    for token in (*words, *map(" ".join, itertools.pairwise(words))):
        code = zlib.crc32(token.encode())
        x[code % (_BANDIT_FEATURES - 1)] += 1 if code & 0x8000_0000 else -1
    length = float(np.linalg.norm(x))
    x = x / length if length else x
    x[-1] = 1.0
    return x
