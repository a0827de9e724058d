"""One row of metrics for each iteration. Pure: what happened in, a JSON-ready row out.

All but "seconds" is the same when a run is killed and resumed. Shares and means are over the rollouts that
were scored; those whose workers failed are counted in "dropped" alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from podium.recordings import was_simulated
from podium.rollout import Rollout
from podium.train.batch import Group
from podium.train.grpo import Update
from podium.train.sampler import Samples


def metrics_row(
    iteration: int,
    *,
    rollouts: Sequence[Sequence[Rollout | None]],
    samples: Sequence[Samples],
    groups: Sequence[Group],
    log_ratios: Sequence[Sequence[float]],
    update: Update,
    rate: float,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """The row of an iteration counted from 0.

    Steps, calls and cost are means over rollouts; "entropy" is in nats a token, estimated without bias by the
    mean of -log p of the sampled tokens; "kl" in nats a rollout, from the policy at the start, 0 where there is no
    KL term; "workers" is each worker's share of the planned steps. Whether a simulated worker answered, and
    whether a recorded one did, is said for reports.
    """
    scored = [rollout for group in rollouts for rollout in group if rollout is not None]
    valid = [rollout for rollout in scored if rollout.valid]
    logprobs = [value for sample in samples for row in sample.logprobs for value in row]
    ended = [value for sample in samples for value in sample.ended]
    spans = [span for rollout in scored for span in rollout.trace.spans]
    return {
        "iteration": iteration,
        "reward": _mean([rollout.reward.total for rollout in scored]),
        "valid": _mean([rollout.valid for rollout in scored]),
        "accuracy": _mean([rollout.correct for rollout in scored]),
        "penalty": _mean([rollout.reward.penalty for rollout in valid]),
        "steps": _mean([rollout.steps for rollout in valid]),
        "calls": _mean([rollout.trace.calls for rollout in scored]),
        "cost_usd": _mean([rollout.trace.uncached_usd for rollout in scored]),
        "workers": worker_shares(valid),
        "entropy": -_mean(logprobs),
        "kl": _mean([nats for group in log_ratios for nats in group]),
        "completion_tokens": len(logprobs) / len(ended),
        "cut_off": 1 - _mean(ended),
        "dead_groups": _mean([group.dead for group in groups]),
        "dropped": sum(rollout is None for group in rollouts for rollout in group),
        "simulated": any(was_simulated(span) for span in spans),
        "recorded": any(span.recorded is not None for span in spans),
        "loss": update.loss,
        "grad_norm": update.grad_norm,
        "lr": rate,
        "seconds": {phase: round(value, 3) for phase, value in seconds.items()},
    }


def worker_shares(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Each worker's share of the steps that the first plans hold, by name; names in order."""
    counts = Counter(
        rollout.trace.pool[step.worker].name
        for rollout in rollouts
        for round_ in rollout.trace.rounds[:1]
        if round_.workflow is not None
        for step in round_.workflow.steps
    )
    return {name: counts[name] / counts.total() for name in sorted(counts)}


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
