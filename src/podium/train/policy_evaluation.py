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


def evaluate_policy(
    rollouts: RolloutCollector, tasks: Sequence[str], *, seed: int, batch_size: int, sampler: Sampler
) -> dict[str, Any]:
    """Evaluate the policy that the sampler samples from. All ranks must call this together.

    "accuracy", "calls" and "cost_usd" (dollars) are means over the questions whose workers did not fail. The other
    figures of `collapse_figures` are about plans. "dropped" counts the completions that could not be scored.

    Args:
        tasks: the ids of the questions in the scoring session.
        batch_size: how many rollouts a rank makes together.

    Raises:
        PodiumError: a rank could not get a prompt or a score. Every rank raises the error.
    """
    began = time.perf_counter()
    ranks = rollouts.ranks
    own = list(enumerate(tasks))[ranks.index :: ranks.size]
    samples: list[RolloutSample] = []
    # Each rank loops equally often, because ranks that hold parts of one model must generate together.
    for first in range(0, len(tasks[:: ranks.size]), batch_size):
        part = [
            RolloutSample(ScheduledGroup(0, number, round_, task, f"evaluation/{seed}/{number}"), 0)
            for number, task in own[first : first + batch_size]
            for round_ in range(rollouts.rounds)
        ]
        completed, _ = rollouts.run(part, sampler, max_samples=batch_size, greedy=True)
        samples += completed
    figures = batch_figures(ranks.gather(samples))
    return {
        "questions": len(tasks),
        **{key: figures[key] for key in _REPORTED},
        "seconds": time.perf_counter() - began,
    }
