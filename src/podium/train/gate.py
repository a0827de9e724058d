"""The gate before reinforcement: whether the first batch shows a start that can learn more than the form of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.errors import UsageError
from podium.train.metrics import batch_figures
from podium.train.rollouts import SampledCompletion
from podium.train.settings import TrainSettings


def check_gate(settings: TrainSettings, workers: Sequence[str], samples: Sequence[SampledCompletion]) -> None:
    """Let the first batch pass, or refuse it before anything is learned from it.

    Args:
        workers: names of the pool's workers.
        samples: of all ranks.

    Raises:
        UsageError: it does not fulfil `grpo.gate`; the error names all that is missing.
    """
    faults = list(_faults(settings, workers, samples))
    if faults:
        raise UsageError(
            f"The start does not pass grpo.gate: {'; '.join(faults)}. Nothing was learned. Train it longer with "
            "--stage sft, or widen the gate."
        )


def _faults(
    settings: TrainSettings, workers: Sequence[str], samples: Sequence[SampledCompletion]
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
    if gate.all_steps:
        found = {sample.score.steps for sample in samples if sample.score is not None and sample.score.valid}
        if missing_counts := sorted(set(range(1, settings.max_steps + 1)) - found):
            yield f"no plan has {', '.join(map(str, missing_counts))} steps"
