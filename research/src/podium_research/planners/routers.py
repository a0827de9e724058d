"""Routers: planners that read the question's text and send the whole question to one worker or committee.

A learned rule is trained on scored questions before the comparison. Routers that count dollars are in
`podium_research.planners.learned_routers`, those that learn while they run in `podium_research.planners.online`.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.planners.answer_matrix import Floats
from podium.planners.voting import Committee, Single
from podium.plugin_api.planners import Plan, Planner, PlanRequest
from podium_research.planners.predictors import Method, Vectors, fit

RoutingRule = Callable[[str], str | Committee]
"""A function from a question's text to the name of a worker, or to a committee."""


@dataclass(frozen=True, slots=True)
class Router(Planner):
    """Sends the whole question to the worker or committee that `rule` returns.

    Make the rule on other questions than those of the comparison.
    """

    rule: RoutingRule
    name: str = "router"

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
        vectors: an encoder. Default: hashed n-grams.
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


_FEATURES = 64


def text_features(text: str) -> Floats:
    """[64]: signed hashes of words and pairs of words, scaled to length 1; the last feature is a constant 1."""
    x = np.zeros(_FEATURES)
    words = text.casefold().split()
    for token in (*words, *map(" ".join, itertools.pairwise(words))):
        code = zlib.crc32(token.encode())
        x[code % (_FEATURES - 1)] += 1 if code & 0x8000_0000 else -1
    length = float(np.linalg.norm(x))
    x = x / length if length else x
    x[-1] = 1.0
    return x
