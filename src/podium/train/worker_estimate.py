"""Estimates the calls, tokens, dollars and seconds of a run's workers, from a sample of plans.

Nobody knows the plans of a policy before it is trained. So the estimate takes random valid plans of every length for a
sample of the run's tasks, and prices each with `podium.executor.estimate`. It leaves out the cost of graders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, quantiles
from types import MappingProxyType

from podium.executor.estimate import Range, StepEstimate, estimate
from podium.planners.constant_and_random import random_workflow
from podium.rollout.random_pools import PoolSource
from podium.scoring import ScoringSettings
from podium.tasks import Task
from podium.trace.answers import PastAnswers
from podium.workers.pool import Pool
from podium.workers.traits import real_workers

TOKENS_A_SECOND = 50
"""Of a worker whose seconds are not known."""
PLANS = 300
"""Random plans that are priced."""
RESAMPLES = 200
"""Of the bootstrap."""


@dataclass(frozen=True, slots=True)
class PlanSample:
    """One random plan for one of the run's tasks, and what it would cost."""

    written: int
    """Steps as written; those that nothing needs are not run."""
    asked: tuple[StepEstimate, ...]
    """Steps that would be run."""

    def total(self, figure: str, which: str) -> float:
        """ "tokens" or "cost_usd" of all steps, for "low", "likely" or "high" lengths of responses."""
        guesses = (getattr(step, which) for step in self.asked)
        return float(sum(guess.usage.tokens if figure == "tokens" else guess.cost_usd for guess in guesses))


@dataclass(frozen=True, slots=True)
class WorkerEstimate:
    """What running one plan costs, at the mean over random plans."""

    samples: tuple[PlanSample, ...]
    calls: Range
    tokens: Range
    cost_usd: Range
    by_steps: Mapping[int, float]
    """Likely dollars, by the number of steps written."""
    busy_s: Mapping[str, float]
    """Seconds of each worker's calls, over the calls that it takes at once."""
    slowest_s: float
    """Seconds of the steps of the slowest plan, one after the other."""
    paid: bool
    """Whether any worker costs money. If so, only those are counted; if not, all are, and nothing is paid."""

    def seconds(self, plans: int) -> float:
        """That so many plans take when all begin at once: those of the busiest worker, at least of the slowest plan."""
        return max(self.slowest_s, plans * max(self.busy_s.values(), default=0.0))


def estimate_workers(
    settings: ScoringSettings,
    pool: Pool,
    tasks: Sequence[Task],
    *,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> WorkerEstimate:
    """What plans for these tasks cost; the same arguments give the same figures.

    The interval is that of 95 in 100 resamples, from their mean with short responses to that with long ones.

    Args:
        past: by worker's name; of the others the length of a response is assumed.
    """
    random = Random(f"estimate/{settings.seed}")
    source = PoolSource(pool, settings.pool_draw)
    real = {worker.profile.name for worker in real_workers(pool)}
    samples = []
    for number in range(PLANS):
        task = random.choice(tasks)
        drawn = source.draw(f"estimate/{number}")
        workflow = random_workflow(
            random, workers=len(drawn), max_steps=settings.max_steps, access=settings.prompt.access
        )
        priced = estimate(workflow, drawn, task.question, past=past)
        asked = tuple(step for step in priced.steps if not real or step.worker in real)
        samples.append(PlanSample(len(workflow.steps), asked))
    busy, slowest = dict.fromkeys(real, 0.0), 0.0
    for sample in samples if real else ():
        taken = [_seconds(step) for step in sample.asked]
        slowest = max(slowest, sum(taken))
        for step, seconds in zip(sample.asked, taken, strict=True):
            busy[step.worker] += seconds / pool.named(step.worker).limits.concurrency / PLANS
    calls = [float(len(sample.asked)) for sample in samples]
    return WorkerEstimate(
        samples=tuple(samples),
        calls=_interval((calls, calls, calls), random),
        tokens=_interval(_lengths(samples, "tokens"), random),
        cost_usd=_interval(_lengths(samples, "cost_usd"), random),
        by_steps={
            steps: fmean(one.total("cost_usd", "likely") for one in samples if one.written == steps)
            for steps in sorted({one.written for one in samples})
        },
        busy_s=busy,
        slowest_s=slowest,
        paid=bool(real),
    )


def _seconds(step: StepEstimate) -> float:
    known = step.likely.latency_s
    return step.usage.output_tokens / TOKENS_A_SECOND if known is None else known


Lengths = tuple[list[float], list[float], list[float]]
"""A figure of each sample, for short, likely and long responses."""


def _lengths(samples: Sequence[PlanSample], figure: str) -> Lengths:
    low, likely, high = (
        [sample.total(figure, which) for sample in samples] for which in ("low", "likely", "high")
    )
    return low, likely, high


def _interval(figures: Lengths, random: Random) -> Range:
    low, likely, high = figures

    def means(values: list[float]) -> list[float]:
        drawn = [fmean(random.choices(values, k=len(values))) for _ in range(RESAMPLES)]
        return quantiles(drawn, n=40, method="inclusive")

    return Range(means(low)[0], fmean(likely), means(high)[-1])
