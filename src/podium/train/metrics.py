"""Computes the row of metrics of an iteration, ready for JSON. It writes no file.

When a run is killed and resumed, everything but "seconds" comes out the same. Shares and means are over the rollouts
that were scored. A rollout whose workers failed counts in "dropped" only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from podium.recordings import was_simulated
from podium.rollout import Rollout
from podium.train.batch import Group
from podium.train.collapse import alarms, variety
from podium.train.grpo import Update
from podium.train.sampler import Samples
from podium.workflow import edges


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

    "entropy": nats a token, estimated without bias by the mean of -log p of the sampled tokens.
    "kl": nats a rollout, from the policy that training started from; 0 if there is no KL term.
    "zero_variance_groups": share of the groups whose rewards are all equal.
    "workers": each worker's share of the steps of first plans; in the rows of `lm.metrics`, of the plans of all rounds.
    "simulated", "recorded": whether a simulated or a recorded worker answered; reports say so.
    Steps, calls and cost are means over rollouts.
    "unreadable": share of the rollouts whose first plan cannot be read.
    "worker_entropy", "topology_entropy", "commonest_plan", "alarms": of the plans of all rounds; see
    `podium.train.collapse`.
    """
    scored = [rollout for group in rollouts for rollout in group if rollout is not None]
    valid = [rollout for rollout in scored if rollout.valid]
    logprobs = [value for sample in samples for row in sample.logprobs for value in row]
    ended = [value for sample in samples for value in sample.ended]
    spans = [span for rollout in scored for span in rollout.trace.spans]
    row = {
        "iteration": iteration,
        "reward": _mean([rollout.reward.total for rollout in scored]),
        "valid": _mean([rollout.valid for rollout in scored]),
        "unreadable": _mean([not rollout.valid for rollout in scored]),
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
        "zero_variance_groups": _mean([group.zero_variance for group in groups]),
        "dropped": sum(rollout is None for group in rollouts for rollout in group),
        **variety(_plans(scored)),
        "simulated": any(was_simulated(span) for span in spans),
        "recorded": any(span.recorded is not None for span in spans),
        "loss": update.loss,
        "grad_norm": update.grad_norm,
        "lr": rate,
        "seconds": {phase: round(value, 3) for phase, value in seconds.items()},
    }
    return {**row, "alarms": alarms(row)}


def worker_shares(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Each worker's share of the steps of the rollouts' first plans, by worker name, in alphabetical order."""
    counts = Counter(
        rollout.trace.pool[step.worker].name
        for rollout in rollouts
        for round_ in rollout.trace.rounds[:1]
        if round_.workflow is not None
        for step in round_.workflow.steps
    )
    return {name: counts[name] / counts.total() for name in sorted(counts)}


def _plans(rollouts: Sequence[Rollout]) -> list[tuple[tuple[str, ...], str]]:
    """The workers and the edges of each plan that could be read and is no acceptance."""
    return [
        (
            tuple(rollout.trace.pool[step.worker].name for step in round_.workflow.steps),
            edges(round_.workflow),
        )
        for rollout in rollouts
        for round_ in rollout.trace.rounds
        if round_.workflow is not None and round_.plan_error is None
    ]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
