"""A threshold between two workers, as in RouteLLM (Ong et al. 2024): the strong one answers where it is needed most.

A learned predictor says how probable it is that the strong worker's answer is better. The share of questions that go to
the strong worker is set by the user; the threshold follows from training questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.errors import ConfigError
from podium.planner import BatchPlanner, PlanRequest
from podium.planners.baseline import BaselineContext, BaselineSpec, read_worker
from podium.planners.voting import Single
from podium.trace import Plan
from podium_research.planners.learned_routers import read_method
from podium_research.planners.predictors import (
    CachedPredictor,
    Method,
    Predict,
    fit_calibrated,
    sentence_vectors,
)


@dataclass(frozen=True, slots=True)
class Threshold(BatchPlanner):
    """Sends the whole question to `strong` where `gain` of its text is over `least`, else to `weak`."""

    weak: str
    strong: str
    gain: Predict
    """A function from N texts to [N, 1]: how probable it is that the strong worker's answer is better."""
    least: float
    name: str = "threshold"

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` if the pool has no such worker."""
        gain = float(self.gain([request.question.text])[0, 0])
        return await Single(self.strong if gain > self.least else self.weak).plan(request)

    def prefetch(self, questions: Sequence[str]) -> None:
        """Predict for all of these questions at once."""
        self.gain(questions)


class _Read(NamedTuple):
    """A name and what it says after "threshold:"."""

    name: str
    weak: str
    strong: str
    method: Method
    share: float
    """The share of the questions that go to the strong worker."""
    model: str
    """The encoder; "" for n-grams."""


def _read(argument: str) -> _Read:
    """Read what a name says after "threshold:".

    Raises:
        ConfigError: there is no such method, the share is none.
    """
    workers, _, rest = argument.partition(":")
    weak, _, strong = workers.partition(">")
    method, _, rest = rest.partition(":")
    written, _, model = rest.partition(":")
    name = f"threshold:{argument}" if argument else "threshold"
    known = read_method(method, name)
    try:
        share = float(written)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(
            f"The planner {name!r} needs the share of questions that go to {strong}, a number from 0 to 1, such as "
            f"threshold:{workers}:{known}:0.3."
        )
    return _Read(name, weak, strong, known, share, model)


def _open(argument: str, context: BaselineContext) -> Threshold:
    read = _read(argument)
    name = read.name
    pair = read_worker(read.weak, context, name), read_worker(read.strong, context, name)
    assert context.scored is not None
    scored = context.scored.of_workers(pair, name)
    if len(scored.workers) < len(set(pair)):
        raise ConfigError(f"The planner {name!r} needs answers of both workers to training questions.")
    scores = dict(zip(scored.workers, scored.score_QW.T, strict=True))
    better_Q1 = (scores[pair[1]] > scores[pair[0]]).astype(float)[:, None]
    vectors = sentence_vectors(read.model) if read.model else None
    gain = fit_calibrated(read.method, scored.texts, better_Q1, vectors=vectors)
    least = {0.0: math.inf, 1.0: -math.inf}.get(
        read.share, float(np.quantile(gain.unseen_QT, 1 - read.share))
    )
    return Threshold(*pair, CachedPredictor(gain.predict), least, name)


BASELINE = BaselineSpec(
    "threshold:WEAK>STRONG:METHOD:SHARE",
    _open,
    needs=lambda argument: tuple(argument.partition(":")[0].split(">")),
    learns=True,
    check=_read,
    examples=lambda workers: [f"threshold:{workers[0]}>{workers[-1]}:ridge:0.5"],
)
