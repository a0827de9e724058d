"""Computes one row of metrics for each batch of rollouts, for either engine. The functions are pure.

`check_gate` refuses a first batch whose plans give reinforcement nothing to learn from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from podium.errors import UsageError
from podium.rollout.collapse import PlanFacts, collapse_figures, mean, question_kind
from podium.scoring import Score
from podium.train.rollouts import RolloutSample
from podium.train.settings import TrainSettings

EVALUATION_FIGURES = (*collapse_figures(()), "calls", "cost_usd", "dropped")
"""The figures of `batch_figures` that an evaluation reports."""


def batch_figures(samples: Sequence[RolloutSample]) -> dict[str, Any]:
    """Figures of a batch: means, among them the `collapse_figures`.

    "accuracy", "accuracy_readable", "calls" and "cost_usd" are about whole rollouts, after their last round. All other
    figures are about single plans. Figures of what a plan says count plans whose workers or grader failed; figures of
    what it earned do not. "failed" is the share of these plans. "dropped" counts them, and the completions that were
    not generated because their prompts were too long. "unrewarded_groups" is the share of the groups without any
    reward. "zero_variance_groups" is the share of the other groups whose rewards are all equal.
    """
    written = [sample for sample in samples if sample.tokens]
    of_plan = [
        (sample.score, question_kind(sample.group.task)) for sample in written if sample.score is not None
    ]
    plans = [score for score, _ in of_plan]
    readable = [score for score in plans if score.valid]
    scored = [score for score in plans if score.reward is not None]
    ends = _last_scores(samples)
    groups = _groups(samples)
    rewarded = [group for group in groups if group]
    counts = Counter(worker for score in readable for worker in score.workers)
    return {
        "reward": mean(sample.reward for sample in samples if sample.reward is not None),
        **collapse_figures([_plan_facts(score, kind) for score, kind in of_plan]),
        "unreadable": mean(not score.valid for score in plans),
        "failed": mean(score.reward is None for score in plans),
        "accuracy": mean(score.correct for score in ends),
        "accuracy_readable": mean(score.correct for score in ends if score.valid),
        "penalty": mean(score.parts.penalty for score in readable if score.parts is not None),
        "calls": mean(score.calls for score in ends),
        "cost_usd": mean(score.cost_usd for score in ends),
        "accepted": mean(score.accepted for score in readable),
        "workers": {name: counts[name] / counts.total() for name in sorted(counts)},
        "completion_tokens": mean(len(sample.tokens) for sample in written),
        "cut_off": mean(sample.truncated for sample in written),
        "zero_variance_groups": mean(len(set(group)) == 1 for group in rewarded),
        "unrewarded_groups": mean(not group for group in groups),
        "dropped": len(written) - len(scored) + sum(sample.too_long for sample in samples),
        "recorded": any(score.recorded for score in scored),
        "trace_id": next((score.trace_id for score in ends), None),
    }


def _plan_facts(score: Score, kind: str) -> PlanFacts:
    return PlanFacts(kind, score.valid, None if score.reward is None else score.correct, score)


def tracked_figures(row: dict[str, Any]) -> dict[str, float]:
    """The figures of a row that a tracker such as Weights & Biases plots, including each worker's share."""
    flat = {key: value for key, value in row.items() if isinstance(value, int | float)}
    return {key: float(value) for key, value in flat.items()} | {
        f"workers/{name}": share for name, share in row["workers"].items()
    }


def _last_scores(samples: Sequence[RolloutSample]) -> list[Score]:
    """The score of each rollout's last round that could be scored."""
    latest: dict[tuple[str, int], Score] = {}
    for sample in sorted(samples, key=lambda sample: sample.group.round):
        if sample.score is not None and sample.score.reward is not None:
            latest[sample.key] = sample.score
    return list(latest.values())


def _groups(samples: Sequence[RolloutSample]) -> list[list[float]]:
    groups: dict[Any, list[float]] = {}
    for sample in samples:
        group = groups.setdefault(sample.group, [])
        if sample.reward is not None:
            group.append(sample.reward)
    return list(groups.values())


def check_gate(settings: TrainSettings, workers: Sequence[str], samples: Sequence[RolloutSample]) -> None:
    """Refuse a first batch that does not fulfil `grpo.gate`, before anything is learned from it.

    Args:
        workers: names of the workers that questions may use.
        samples: the samples of all ranks.

    Raises:
        UsageError: the batch does not fulfil `grpo.gate`, and the error names everything that is missing; or workers or
            the grader failed for every plan.
    """
    errors = [sample.score.error for sample in samples if sample.score is not None]
    if errors and all(sample.score is None or sample.score.reward is None for sample in samples):
        raise UsageError(
            f"Workers or the grader failed for all {len(errors)} plans of the first batch, the first one with: "
            f"{errors[0]} Nothing was learned. Run podium pool check, and then the same command again."
        )
    faults = list(_faults(settings, workers, samples))
    if faults:
        raise UsageError(
            f"The start does not pass grpo.gate: {'; '.join(faults)}. Nothing was learned. Train it longer with "
            "--stage sft, or widen the gate."
        )


def _faults(
    settings: TrainSettings, workers: Sequence[str], samples: Sequence[RolloutSample]
) -> Iterator[str]:
    gate = settings.grpo.gate
    figures = batch_figures(samples)
    if figures["valid"] < gate.readable:
        yield f"{figures['valid']:.1%} of the plans can be read, and readable = {gate.readable:g}"
    if figures["first_worker_entropy"] < gate.first_worker_entropy:
        entropy = figures["first_worker_entropy"]
        yield f"first workers have {entropy:.2f} nats, and first_worker_entropy = {gate.first_worker_entropy:g}"
    if gate.all_workers and (missing := sorted(set(workers) - figures["workers"].keys())):
        yield f"no plan names {', '.join(missing)}"
    readable = [sample.score for sample in samples if sample.score is not None and sample.score.valid]
    missing_counts = set(range(1, settings.max_steps + 1)) - {score.steps for score in readable}
    if gate.all_steps and missing_counts:
        yield f"no plan has {', '.join(map(str, sorted(missing_counts)))} steps"
    topologies = {score.topology for score in readable}
    if len(topologies) < gate.topologies:
        yield f"plans have {len(topologies)} topologies, and topologies = {gate.topologies}"
