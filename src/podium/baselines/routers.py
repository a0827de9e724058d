"""Routers: planners that read the question's text and send the whole question to one worker or committee.

Ridge regression and nearest neighbours are trained on scored questions before the comparison; LinUCB (Li et al. 2010)
learns while it runs. Their features are hashed n-grams (scikit-learn) or the vectors of an `Encoder`.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from podium.baselines.plans import plan_once
from podium.baselines.voting import Committee, Single
from podium.errors import ConfigError
from podium.planner import Plan, PlanRequest
from podium.workers.vote import VOTE
from podium.workflow import Workflow

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


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


Floats = npt.NDArray[np.float64]
Method = Literal["ridge", "neighbours"]
_HASHED_NGRAMS = 2**15


def learn_router(
    method: Method,
    texts: Sequence[str],
    score_QW: Floats,
    workers: Sequence[str],
    *,
    vectors: Mapping[str, Floats] | None = None,
    price_W: Floats | None = None,
    neighbours: int = 20,
    penalty: float = 1.0,
) -> RoutingRule:
    """Train a rule that chooses the worker with the highest predicted score.

    Args:
        texts: Q questions.
        score_QW: the score of each worker's answer to each question, in [0, 1].
        vectors: an encoder's vectors by text, for these questions and all that will be routed; None: n-grams are used.
        price_W: a price to subtract from each worker's predicted score; None: none.
        neighbours: for "neighbours", how many of the nearest questions predict a score.
        penalty: for "ridge", the penalty on the squared weights.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    try:
        from sklearn.linear_model import Ridge  # noqa: PLC0415 - an optional extra
        from sklearn.neighbors import KNeighborsRegressor  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            "Learned routers need scikit-learn, which is not installed: pip install 'podium-conductor[recordings]'."
        ) from None
    features = _ngram_features() if vectors is None else _KnownVectors(vectors)
    model: Any = Ridge(alpha=penalty, solver="sparse_cg", random_state=0)
    if method == "neighbours":
        model = KNeighborsRegressor(
            n_neighbors=min(neighbours, len(texts)), metric="cosine", weights="distance", algorithm="brute"
        )
    model.fit(features.fit_transform(list(texts)), score_QW)
    price = np.zeros(len(workers)) if price_W is None else price_W
    known: dict[str, str] = {}

    def rule(text: str) -> str:
        if text not in known:
            predicted = np.atleast_2d(model.predict(features.transform([text])))[0]
            known[text] = workers[int(np.argmax(predicted - price))]
        return known[text]

    return rule


class _KnownVectors:
    """Precomputed vectors with the interface of a scikit-learn feature extractor."""

    def __init__(self, vectors: Mapping[str, Floats]) -> None:
        self._vectors = vectors

    def transform(self, texts: Sequence[str]) -> Floats:
        """[Q, D]: the vectors of the texts."""
        return np.stack([self._vectors[text] for text in texts])

    fit_transform = transform


def _ngram_features() -> Pipeline:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer  # noqa: PLC0415
    from sklearn.pipeline import FeatureUnion, make_pipeline  # noqa: PLC0415

    words = HashingVectorizer(n_features=_HASHED_NGRAMS, ngram_range=(1, 2), alternate_sign=False)
    letters = HashingVectorizer(
        n_features=_HASHED_NGRAMS, analyzer="char_wb", ngram_range=(3, 4), alternate_sign=False
    )
    return make_pipeline(
        FeatureUnion([("words", words), ("letters", letters)]), TfidfTransformer(sublinear_tf=True)
    )


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
