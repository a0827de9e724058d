"""LinUCB: a bandit that chooses one worker for each question and learns from the verdict as it goes (Li et al. 2010).

It starts from nothing, so its figures hold its mistakes of learning. The verdict on its own choice, and on no other,
is told by `verdict`, which a recording can do at once.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import numpy.typing as npt

from podium.baselines.plans import written
from podium.baselines.single import Single
from podium.planner import Plan, PlanRequest
from podium.workflow import Workflow

Floats = npt.NDArray[np.float64]
Verdict = Callable[[PlanRequest, str], Awaitable[float]]
"""(situation, worker) -> how right the answer is that the worker gives in it, in [0, 1]."""
_FEATURES = 64


class LinUCB:
    """A ridge regression for each worker, and the benefit of the doubt.

    Args:
        workers: names of those to choose from.
        verdict: asked once for each question, about the worker that was chosen.
        doubt: how many standard deviations of doubt count for a worker.
    """

    name = "linucb"

    def __init__(self, workers: Sequence[str], verdict: Verdict, *, doubt: float = 0.5) -> None:
        self.workers = tuple(workers)
        self.verdict = verdict
        self.doubt = doubt
        self._inverse = np.stack([np.eye(_FEATURES)] * len(self.workers))
        self._told: set[str] = set()
        self._moment = np.zeros((len(self.workers), _FEATURES))

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` when the pool lacks a worker. Asked again, it accepts and learns nothing."""
        if request.outcomes:
            return written(request, Workflow(()))
        text = request.question.text
        x = features(text)
        chosen = self._choose(x)
        plan = await Single(self.workers[chosen]).plan(request)
        if text not in self._told:
            self._told.add(text)
            self._learn(chosen, x, await self.verdict(request, self.workers[chosen]))
        return plan

    def _choose(self, x: Floats) -> int:
        shared = self._inverse @ x
        expected = np.einsum("wf,wf->w", shared, self._moment)
        return int(np.argmax(expected + self.doubt * np.sqrt(shared @ x)))

    def _learn(self, worker: int, x: Floats, verdict: float) -> None:
        gain = self._inverse[worker] @ x
        self._inverse[worker] -= np.outer(gain, gain) / (1 + gain @ x)
        self._moment[worker] += verdict * x


def features(text: str) -> Floats:
    """[64]: words and their pairs, hashed with a sign and scaled to length 1; the last is always there."""
    x = np.zeros(_FEATURES)
    words = text.casefold().split()
    for token in (*words, *map(" ".join, itertools.pairwise(words))):
        code = zlib.crc32(token.encode())
        x[code % (_FEATURES - 1)] += 1 if code & 0x8000_0000 else -1
    length = float(np.linalg.norm(x))
    x = x / length if length else x
    x[-1] = 1.0
    return x
