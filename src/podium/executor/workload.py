"""Estimates many plans from a sample of them: the calls, tokens, dollars and seconds of a training or a study.

`estimate_plan` says what one plan would need. A sample stands for all plans of a run, so the estimate is that of its
mean plan, as often as there will be plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from podium.executor.estimate import Range, StepEstimate
from podium.workers.base import Worker
from podium.workers.traits import costly_workers

TOKENS_A_SECOND = 50
"""The assumed tokens a second of a worker whose seconds are not known."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the mean plan of a sample needs. Steps of workers that cost nothing, such as recorded ones, take no time."""

    calls: float
    tokens: Range
    cost_usd: Range
    total_s: float
    """Seconds of its steps, one after the other."""
    busiest_s: float
    """Seconds of the busiest worker, over the calls that it takes at once."""
    slowest_s: float
    """Seconds of the steps of the slowest plan, one after the other."""
    is_timed: bool
    """Whether the seconds of all its workers are known; else so many tokens a second are assumed."""

    @classmethod
    def of(cls, plans: Sequence[Sequence[StepEstimate]], workers: Iterable[Worker]) -> Workload:
        """The mean of plans over these workers.

        Args:
            plans: the steps of each that count.
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
        """Seconds that so many plans take: the busiest worker's, and at least the slowest plan's.

        Args:
            concurrency: how many steps run at once, or None for any number.
        """
        together = 0.0 if concurrency is None else plans * self.total_s / concurrency
        return max(self.slowest_s, plans * self.busiest_s, together)


def _seconds(step: StepEstimate) -> float:
    return step.output_tokens.likely / TOKENS_A_SECOND if step.seconds is None else step.seconds.likely
