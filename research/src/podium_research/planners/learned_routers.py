"""Learned routers with a price: each question goes where the predicted score minus PER_USD x dollars is highest.

`router:METHOD:PER_USD` chooses one worker, `committee-router:METHOD:PER_USD` a vote of up to five workers. Both learn
from answers to other questions (`AnswerMatrix`). `podium_research.planners.predictors` has the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from podium.config import suggestion
from podium.errors import ConfigError
from podium.planners.answer_matrix import AnswerMatrix, Floats, Members
from podium.planners.rating_router import parse_accuracy_per_usd
from podium.planners.voting import Committee
from podium.plugin_api.planners import BaselineContext, BatchPlanner, Plan, PlannerSpec, PlanRequest
from podium_research.planners.predictors import (
    METHODS,
    CachedPredictor,
    Calibrated,
    Method,
    Predict,
    Vectors,
    fit,
    fit_calibrated,
    sentence_vectors,
)
from podium_research.planners.scored_answers import answers_of_workers, fewest_samples

MAX_ANSWERS = 5
"""The most answers that a committee votes on."""
_MAX_WORKERS = 10
"""Committees consist of this many workers at most, the most accurate ones: ten have 637 committees, forty 760,000."""
_MAX_WORKERS_WHEN_REPEATED = 3
"""The most different workers of a committee in which a worker answers more than once."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """What each of C committees is expected to score and to cost on a question. One worker is a committee, too."""

    committees: tuple[tuple[str, ...], ...]
    """The names of the workers of each committee."""
    score: Predict
    """A function from N questions to [N, C] scores."""
    dollars: Predict
    """A function from N questions to [N, C] dollars."""


def estimate_workers(
    scored: AnswerMatrix, calibrated: Calibrated, *, vectors: Vectors | None = None
) -> Estimates:
    """What each worker alone scores, as `calibrated` predicts, and what it costs on the nearest questions."""
    return Estimates(
        tuple((worker,) for worker in scored.workers),
        calibrated.predict,
        fit("neighbours", scored.texts, scored.cost_QW, vectors=vectors),
    )


def estimate_committees(
    scored: AnswerMatrix, calibrated: Calibrated, *, vectors: Vectors | None = None
) -> Estimates:
    """What each vote of up to five answers scores and costs.

    The score is the mean of two estimates. One is the share of right votes on the nearest questions. The other follows
    from the scores that `calibrated` predicts of the workers: it assumes that different workers err independently, and
    takes from all training questions how often a vote of m answers is right when r of them are.
    """
    members = tuple(_committees(scored))
    figures = [scored.vote(committee) for committee in members]
    score_QC = np.stack([score for score, _ in figures], axis=1)
    cost_QC = np.stack([cost for _, cost in figures], axis=1)
    near = fit("neighbours", scored.texts, np.hstack([score_QC, cost_QC]), vectors=vectors)
    independent = independent_votes(members, scored.right_counts, score_QC, samples=fewest_samples(scored))

    def score(texts: Sequence[str]) -> Floats:
        independent_NC = independent(calibrated.predict(texts), calibrated.spread_T)
        mean_NC: Floats = (near(texts)[:, : len(members)] + independent_NC) / 2
        return mean_NC

    return Estimates(
        tuple(tuple(scored.workers[w] for w in committee) for committee in members),
        score,
        lambda texts: near(texts)[:, len(members) :],
    )


def independent_votes(
    members: Sequence[Members],
    right_counts: Callable[[Members], Floats],
    score_QC: Floats,
    *,
    samples: int,
) -> Callable[[Floats, Floats], Floats]:
    """What each of C votes scores if different workers err independently.

    How often a vote of m answers is right when r of them are is measured on all training questions.

    Args:
        right_counts: from the M workers of a vote to [Q, M + 1]: how often r of its answers to the training questions
            are right.
        score_QC: each vote's score on them.
        samples: how many answers of each worker were known of a training question.

    Returns:
        A function of each worker's probability of being right, [N, W], and of the spread of these predictions, [W]
        (`spread_of`). It gives [N, C].
    """
    vote_of = _votes_by_right_answers(members, right_counts, score_QC)

    def scores(share_NW: Floats, spread_W: Floats) -> Floats:
        counts = _RightCounts(share_NW, _likeness(spread_W, samples))
        return np.stack([counts.of(committee) @ vote_of[len(committee)] for committee in members], axis=1)

    return scores


def _likeness(spread_W: Floats, samples: int) -> Floats:
    """How alike several answers of a worker to one question are: from 0, independent, to 1, all right or all wrong.

    The spread is of the mean of S answers. It is 1 / S where they are independent, and 1 where they are alike.
    """
    if samples == 1:
        return spread_W
    return np.asarray(((samples * spread_W - 1) / (samples - 1)).clip(0.01, 0.99))


def _committees(scored: AnswerMatrix) -> Iterator[Members]:
    """Each worker alone, then votes of 2 to 5 answers; no more than 3 workers where one of them answers twice."""
    order = np.argsort(-scored.score_QW.mean(axis=0), kind="stable").tolist()
    yield from ((worker,) for worker in order)
    for size in range(2, MAX_ANSWERS + 1):
        for members in combinations_with_replacement(order[:_MAX_WORKERS], size):
            most = max(map(members.count, members))
            if most == 1 or (
                most <= fewest_samples(scored) and len(set(members)) <= _MAX_WORKERS_WHEN_REPEATED
            ):
                yield members


class _RightCounts:
    """How probable it is that r of the answers of a committee are right.

    Args:
        share_NW: each worker's probability of being right.
        likeness_W: how alike several answers of one worker to a question are, from 0 (independent) to 1 (all right or
            all wrong): they follow a beta-binomial distribution. Default: 0.
    """

    def __init__(self, share_NW: Floats, likeness_W: Floats | None = None) -> None:
        self._share_NW = share_NW.clip(0, 1)
        self._likeness_W = np.zeros(share_NW.shape[1]) if likeness_W is None else likeness_W
        self._cached_counts = lru_cache(maxsize=None)(self._count_right)

    def of(self, members: Members) -> Floats:
        """[N, M + 1]: for r from 0 to M."""
        probability = np.ones((len(self._share_NW), 1))
        for worker, times in Counter(members).items():
            chance_NR = self._cached_counts(worker, times)
            joined = np.zeros((len(probability), probability.shape[1] + times))
            for right in range(times + 1):
                joined[:, right : right + probability.shape[1]] += probability * chance_NR[:, [right]]
            probability = joined
        return probability

    def _count_right(self, worker: int, times: int) -> Floats:
        share_N1, likeness = self._share_NW[:, [worker]], self._likeness_W[worker]
        if times == 1:
            return np.hstack([1 - share_N1, share_N1])
        from scipy.stats import betabinom, binom  # noqa: PLC0415 - an optional extra

        right = np.arange(times + 1)
        if likeness == 0:
            return np.asarray(binom.pmf(right, times, share_N1))
        share_N1, size = share_N1.clip(1e-6, 1 - 1e-6), (1 - likeness) / likeness
        return np.asarray(betabinom.pmf(right, times, share_N1 * size, (1 - share_N1) * size))


def _votes_by_right_answers(
    members: Sequence[Members], right_counts: Callable[[Members], Floats], score_QC: Floats
) -> dict[int, Floats]:
    """[m + 1] of each size m: how often a vote is right if r of its m answers are, by least squares."""
    by_size = {1: np.array([0.0, 1.0])}
    for size in range(2, MAX_ANSWERS + 1):
        same_size = [(c, committee) for c, committee in enumerate(members) if len(committee) == size]
        if same_size:
            right = np.concatenate([right_counts(committee) for _, committee in same_size])
            score = np.concatenate([score_QC[:, c] for c, _ in same_size])
            by_size[size] = np.linalg.lstsq(right, score, rcond=None)[0].clip(0, 1)
    return by_size


@dataclass(frozen=True)
class PricedRouter(BatchPlanner):
    """Sends the whole question to the committee with the highest predicted score - `per_usd` x dollars.

    `per_usd` is the accuracy that a dollar has to buy, as in `RatingRouter`. At 0 only the score counts.
    """

    estimates: Estimates
    per_usd: float
    name: str = "router"

    async def plan(self, request: PlanRequest) -> Plan:
        """The answers and the vote; `ConfigError` if the pool has no such worker."""
        return await self.choose([request.question.text])[0].plan(request)

    def prefetch(self, questions: Sequence[str]) -> None:
        """Predict for all of these questions at once."""
        self.choose(questions)

    def choose(self, texts: Sequence[str]) -> list[Committee]:
        """The committee of each question."""
        worth_NC = self.estimates.score(texts)
        if self.per_usd:
            worth_NC = worth_NC - self.per_usd * self.estimates.dollars(texts)
        return [Committee(self.estimates.committees[best]) for best in worth_NC.argmax(axis=1)]


def read_method(method: str, name: str) -> Method:
    """The method of predicting that a planner's name has; `ConfigError`, with the name, if there is no such method."""
    for known in METHODS:
        if method == known:
            return known
    raise ConfigError(f"The planner {name!r} has no method that is known; {suggestion(method, METHODS)}")


def _read(argument: str, kind: str) -> tuple[Method, float, str]:
    """The method, the price of a dollar, and the encoder's name, or "" for n-grams.

    Raises:
        ConfigError: there is no such method, the price is no number.
    """
    method, _, rest = argument.partition(":")
    price, _, model = rest.partition(":")
    name = f"{kind}:{argument}"
    per_usd = parse_accuracy_per_usd(price, name, f"{kind}:{method}:10")
    return read_method(method, name), per_usd, model


def _open(context: BaselineContext, kind: str) -> PricedRouter:
    name = f"{kind}:{context.argument}"
    method, per_usd, model = _read(context.argument, kind)
    assert context.scored is not None
    scored = answers_of_workers(context.scored, [profile.name for profile in context.pool], name)
    return PricedRouter(_estimates(scored, kind, method, model), per_usd, name)


def _estimates(scored: AnswerMatrix, kind: str, method: Method, model: str) -> Estimates:
    """Estimates that remember their predictions; routers that differ in their price alone share them."""
    key = (scored.workers, method, model)
    vectors = sentence_vectors(model) if model else None

    def estimates() -> Estimates:
        calibrated = scored.cached(
            key, lambda: fit_calibrated(method, scored.texts, scored.score_QW, vectors=vectors)
        )
        estimate = estimate_workers if kind == "router" else estimate_committees
        fresh = estimate(scored, calibrated, vectors=vectors)
        return replace(fresh, score=CachedPredictor(fresh.score), dollars=CachedPredictor(fresh.dollars))

    return scored.cached((kind, key), estimates)


ROUTER = PlannerSpec(
    "router:METHOD:PER_USD",
    lambda context: _open(context, "router"),
    learns=True,
    check=lambda argument: _read(argument, "router"),
)
COMMITTEE_ROUTER = PlannerSpec(
    "committee-router:METHOD:PER_USD",
    lambda context: _open(context, "committee-router"),
    votes=True,
    learns=True,
    check=lambda argument: _read(argument, "committee-router"),
)
