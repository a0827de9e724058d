"""Estimates the calls, tokens, dollars and seconds of a run's workers, from a sample of plans.

The plans of a policy are not known before its training. So the sample has random valid plans of every length, for some
of the run's tasks. The cost of graders is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from types import MappingProxyType

from podium.executor.estimate import Range, Workload, estimate_plan
from podium.planners.constant_and_random import random_workflow
from podium.rollout.random_pools import PoolSampler
from podium.scoring import ScoringSettings
from podium.store.answers import PastAnswers
from podium.tasks import Task
from podium.workers.base import costly_workers
from podium.workers.pool import Pool

SAMPLED = 300
"""The number of random plans whose price is estimated."""


@dataclass(frozen=True, slots=True)
class WorkerEstimate:
    """The calls of workers in a run, and what they would cost, from the means over random plans."""

    plans: int
    """Plans of the run: one for each completion, as if all could be read."""
    calls: float
    tokens: Range
    cost_usd: Range
    cost_by_steps: Mapping[int, float]
    """For each number of steps, the likely dollars if all plans had that many steps."""
    iteration_s: float
    """Seconds that the workers of one iteration take."""
    paid: bool
    """Whether any worker costs money. If so, only workers that cost money count. If all are scripted or recorded, all
    count, and nothing is paid."""


def estimate_workers(
    settings: ScoringSettings,
    pool: Pool,
    tasks: Sequence[Task],
    *,
    plans: int,
    batch: int,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> WorkerEstimate:
    """Estimate what so many plans for these tasks need. The same arguments give the same figures.

    Args:
        plans: the plans of the whole run.
        batch: the plans of an iteration.
        past: earlier answers by the worker's name. For other workers the length of a response is assumed.
    """
    random = Random(f"estimate/{settings.seed}")
    source = PoolSampler(pool, settings.pool_sampling)
    real = {worker.profile.name for worker in costly_workers(pool)}
    sample, dollars = [], defaultdict[int, list[float]](list)
    for number in range(SAMPLED):
        task = random.choice(tasks)
        drawn = source.draw(f"estimate/{number}")
        workflow = random_workflow(
            random, workers=len(drawn), max_steps=settings.max_steps, access=settings.prompt.access
        )
        steps = estimate_plan(workflow, drawn, task.question, past=past).steps
        counted = tuple(step for step in steps if not real or step.worker in real)
        sample.append(counted)
        # Steps that no other step needs are written but not run.
        dollars[len(workflow.steps)].append(sum(step.cost_usd.likely for step in counted))
    workload = Workload.of(sample, pool)
    return WorkerEstimate(
        plans=plans,
        calls=workload.calls * plans,
        tokens=workload.tokens.times(plans),
        cost_usd=workload.cost_usd.times(plans),
        cost_by_steps={steps: fmean(costs) * plans for steps, costs in sorted(dollars.items())},
        iteration_s=workload.seconds(batch),
        paid=bool(real),
    )
