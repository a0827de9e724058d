"""A threshold between two workers, as in RouteLLM (Ong et al. 2024): the strong one answers where it is needed most.

A learned predictor says how probable it is that the strong worker's answer is better. The share of questions that go to
the strong worker is set by the user; the threshold follows from training questions that a predictor has not seen. So
there are up to five predictors, each trained without one fold of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np

from podium.errors import ConfigError
from podium.planners.answer_matrix import Floats
from podium.planners.voting import Single
from podium.plugin_api.planners import BaselineContext, BatchPlanner, Plan, PlannerSpec, PlanRequest
from podium.types import SEED_PREFIX_CHARS
from podium_research.planners.learned_routers import read_method
from podium_research.planners.predictors import (
    METHODS,
    CachedPredictor,
    Fold,
    Method,
    Predict,
    fit_folds,
    sentence_vectors,
)
from podium_research.planners.scored_answers import answers_of_workers


@dataclass(frozen=True, slots=True)
class Threshold(BatchPlanner):
    """Sends the whole question to `strong` where `rank` of its text is below `share`, else to `weak`."""

    weak: str
    strong: str
    rank: Predict
    """A function from N texts to [N, 1]: the share of questions that need the strong worker more, in [0, 1)."""
    share: float
    name: str = "threshold"

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` if the pool has no such worker."""
        rank = float(self.rank([request.question.text])[0, 0])
        return await Single(self.strong if rank < self.share else self.weak).plan(request)

    def prefetch(self, questions: Sequence[str]) -> None:
        """Predict for all of these questions at once."""
        self.rank(questions)


def ranks(folds: Sequence[Fold]) -> Predict:
    """Rank each question among the questions that the predictors have not seen, by what column 1 gains on column 0.

    It is the smoothed p-value of a cross-conformal predictor (Vovk 2015): each predictor compares a question with its
    own unseen ones, and the order of equal gains is drawn. Over new questions, ranks are about uniform.
    """
    unseen = [_gain(fold.unseen_NT) for fold in folds]
    questions = sum(map(len, unseen))

    def rank(texts: Sequence[str]) -> Floats:
        draw_N1 = np.array([[Random(f"threshold/{text[:SEED_PREFIX_CHARS]}").random()] for text in texts])
        before_N1 = draw_N1.copy()
        for fold, unseen_M in zip(folds, unseen, strict=True):
            gain_N1 = _gain(fold.predict(texts))[:, None]
            before_N1 += (unseen_M > gain_N1).sum(axis=1, keepdims=True)
            before_N1 += draw_N1 * (unseen_M == gain_N1).sum(axis=1, keepdims=True)
        rank_N1: Floats = before_N1 / (questions + 1)
        return rank_N1

    return rank


def _gain(predicted_N2: Floats) -> Floats:
    gain_N: Floats = predicted_N2[:, 1] - predicted_N2[:, 0]
    return gain_N


class _Argument(NamedTuple):
    """A name and what it says after "threshold:"."""

    name: str
    weak: str
    strong: str
    method: Method
    share: float
    """The share of the questions that go to the strong worker."""
    model: str
    """The encoder; "" for n-grams."""


def _read(argument: str) -> _Argument:
    """Read what a name says after "threshold:".

    Raises:
        ConfigError: there is no such method, the share is none.
    """
    workers, rest = _split(argument)
    weak, _, strong = workers.partition(">")
    method_name, _, rest = rest.partition(":")
    share_text, _, model = rest.partition(":")
    name = f"threshold:{argument}" if argument else "threshold"
    method = read_method(method_name, name)
    try:
        share = float(share_text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(
            f"The planner {name!r} needs the share of questions that go to {strong}, a number from 0 to 1, such as "
            f"threshold:{workers}:{method}:0.3."
        )
    return _Argument(name, weak, strong, method, share, model)


def _split(argument: str) -> tuple[str, str]:
    """The workers, and what follows them. Names may have colons, so the workers end before the first known method."""
    parts = argument.split(":")
    end = next((index for index, part in enumerate(parts) if index and part in METHODS), 1)
    return ":".join(parts[:end]), ":".join(parts[end:])


def _open(context: BaselineContext) -> Threshold:
    read = _read(context.argument)
    name = read.name
    pair = context.worker(read.weak), context.worker(read.strong)
    assert context.scored is not None
    scored = answers_of_workers(context.scored, pair, name)
    if len(scored.workers) < len(set(pair)):
        raise ConfigError(f"The planner {name!r} needs answers of both workers to training questions.")
    scores = dict(zip(scored.workers, scored.score_QW.T, strict=True))
    better_Q = scores[pair[1]] > scores[pair[0]]
    vectors = CachedPredictor(sentence_vectors(read.model)) if read.model else None  # All folds ask it.
    # Two columns, because RouterDC learns from the difference between workers.
    preferred_Q2 = np.stack([~better_Q, better_Q], axis=1).astype(float)
    folds = fit_folds(read.method, scored.texts, preferred_Q2, vectors=vectors)
    return Threshold(*pair, CachedPredictor(ranks(folds)), read.share, name)


BASELINE = PlannerSpec(
    "threshold:WEAK>STRONG:METHOD:SHARE",
    _open,
    named_workers=lambda argument: tuple(_split(argument)[0].split(">")),
    learns=True,
    check=_read,
)
