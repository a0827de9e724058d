"""Forecasts the calls, tokens, dollars and seconds of a run's workers, from a sample of plans.

Nobody knows the plans of a policy before it is trained. So random valid plans of every length for a sample of the run's
tasks stand for them. The cost of graders is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from types import MappingProxyType

from podium.executor.estimate import estimate
from podium.executor.workload import Workload
from podium.planners.constant_and_random import random_workflow
from podium.rollout.random_pools import PoolSampler
from podium.scoring import ScoringSettings
from podium.tasks import Task
from podium.trace.answers import PastAnswers
from podium.workers.pool import Pool
from podium.workers.traits import real_workers

PLANS = 300
"""Random plans that are priced."""


@dataclass(frozen=True, slots=True)
class WorkerEstimate:
    """What running one plan needs, at the mean over random plans."""

    workload: Workload
    by_steps: Mapping[int, float]
    """Likely dollars, by the number of steps written."""
    paid: bool
    """Whether any worker costs anything. If so, only those are counted; if not, all are, and nothing is paid."""


def estimate_workers(
    settings: ScoringSettings,
    pool: Pool,
    tasks: Sequence[Task],
    *,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> WorkerEstimate:
    """What plans for these tasks need; the same arguments give the same figures.

    Args:
        past: by worker's name; of the others the length of a response is assumed.
    """
    random = Random(f"estimate/{settings.seed}")
    source = PoolSampler(pool, settings.pool_sampling)
    real = {worker.profile.name for worker in real_workers(pool)}
    plans, dollars = [], defaultdict[int, list[float]](list)
    for number in range(PLANS):
        task = random.choice(tasks)
        drawn = source.draw(f"estimate/{number}")
        workflow = random_workflow(
            random, workers=len(drawn), max_steps=settings.max_steps, access=settings.prompt.access
        )
        steps = estimate(workflow, drawn, task.question, past=past).steps
        counted = tuple(step for step in steps if not real or step.worker in real)
        plans.append(counted)
        # Steps that nothing needs are written and not run.
        dollars[len(workflow.steps)].append(sum(step.cost_usd for step in counted))
    by_steps = {steps: fmean(found) for steps, found in sorted(dollars.items())}
    return WorkerEstimate(Workload.of(plans, pool), by_steps, paid=bool(real))
