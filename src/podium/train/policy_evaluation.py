"""Evaluates the policy while it is trained: one greedy rollout of each validation question.

The code and the budget are the same as for training rollouts. The ranks divide the questions among themselves. Every
evaluation of a run uses the same pools, and the same seeds for the workers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from podium.rollout.collapse import collapse_figures
from podium.train.metrics import batch_figures
from podium.train.rollouts import RolloutCollector, RolloutSample, Sampler
from podium.train.schedule import ScheduledGroup

_REPORTED = (*collapse_figures(()), "calls", "cost_usd", "dropped")
"""The figures of `batch_figures` that an evaluation reports."""


class PolicyEvaluation:
    """The evaluations of one run, on this rank.

    Args:
        tasks: the ids of the questions in the scoring session.
        batch_size: how many rollouts a rank makes together.
    """

    def __init__(
        self, tasks: Sequence[str], rollouts: RolloutCollector, *, seed: int, batch_size: int
    ) -> None:
        self._rollouts = rollouts
        self._questions = [
            [
                ScheduledGroup(0, number, round_, task, f"evaluation/{seed}/{number}")
                for round_ in range(rollouts.rounds)
            ]
            for number, task in enumerate(tasks)
        ]
        self._batch_size = max(1, batch_size)

    def __call__(self, sampler: Sampler) -> dict[str, Any]:
        """Evaluate the policy that the sampler samples from. All ranks must call this together.

        "accuracy", "calls" and "cost_usd" (dollars) are means over the questions whose workers did not fail. The other
        figures of `collapse_figures` are about plans. "dropped" counts the completions that could not be scored.

        Raises:
            PodiumError: a rank could not get a prompt or a score. Every rank raises the error.
        """
        began = time.perf_counter()
        ranks, batch_size = self._rollouts.ranks, self._batch_size
        own = self._questions[ranks.index :: ranks.size]
        samples: list[RolloutSample] = []
        # Each rank loops equally often, because ranks that hold parts of one model must generate together.
        for first in range(0, len(self._questions[:: ranks.size]), batch_size):
            part = [RolloutSample(row, 0) for rows in own[first : first + batch_size] for row in rows]
            completed, _ = self._rollouts.run(part, sampler, max_samples=batch_size, greedy=True)
            samples += completed
        figures = batch_figures(ranks.gather(samples))
        return {
            "questions": len(self._questions),
            **{key: figures[key] for key in _REPORTED},
            "seconds": time.perf_counter() - began,
        }
