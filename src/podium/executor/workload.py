"""Estimates many plans from a sample of them: the calls, tokens, dollars and seconds of a training or a study.

`estimate_plan` says what one plan would need. The estimate of a run is that of the sample's mean plan, times the number
of plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from podium.executor.estimate import Range, StepEstimate
from podium.workers.base import Worker, costly_workers

TOKENS_A_SECOND = 50
"""The assumed tokens per second of a worker whose speed is not known."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the mean plan of a sample needs. Steps of workers that cost nothing, such as recorded workers, take no
    time."""

    calls: float
    tokens: Range
    cost_usd: Range
    total_s: float
    """Seconds of the mean plan's steps, one after the other."""
    busiest_s: float
    """Seconds of the busiest worker, divided by the number of calls that it takes at once."""
    slowest_s: float
    """Seconds of the steps of the slowest plan, one after the other."""
    is_timed: bool
    """Whether the speed of all workers is known. If not, `TOKENS_A_SECOND` is assumed."""

    @classmethod
    def of(cls, plans: Sequence[Sequence[StepEstimate]], workers: Iterable[Worker]) -> Workload:
        """The mean of plans over these workers.

        Args:
            plans: for each plan, the steps that count.
        """
        real = {worker.profile.name: worker for worker in costly_workers(workers)}
        busy, taken, is_timed = dict.fromkeys(real, 0.0), [], True
        for steps in plans:
            timed = [step for step in steps if step.worker in real]
            for step in timed:
                busy[step.worker] += _seconds(step) / real[step.worker].limits.concurrency / len(plans)
                is_timed &= step.seconds is not None
            taken.append(sum(map(_seconds, timed)))
        return cls(
            calls=fmean(map(len, plans)),
            tokens=Range.sum(step.tokens for steps in plans for step in steps).times(1 / len(plans)),
            cost_usd=Range.sum(step.cost_usd for steps in plans for step in steps).times(1 / len(plans)),
            total_s=fmean(taken),
            busiest_s=max(busy.values(), default=0.0),
            slowest_s=max(taken),
            is_timed=is_timed,
        )

    def seconds(self, plans: float, *, concurrency: float | None = None) -> float:
        """Seconds that so many plans take: those of the busiest worker, and at least those of the slowest plan.

        Args:
            concurrency: how many steps run at once. None sets no limit.
        """
        together = 0.0 if concurrency is None else plans * self.total_s / concurrency
        return max(self.slowest_s, plans * self.busiest_s, together)


def _seconds(step: StepEstimate) -> float:
    return step.output_tokens.likely / TOKENS_A_SECOND if step.seconds is None else step.seconds.likely
