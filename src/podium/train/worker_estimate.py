"""Forecasts the calls, tokens, dollars and seconds of a run's workers, from a sample of plans.

The plans of a policy are not known before it is trained. So random valid plans of every length, for a sample of the
run's tasks, stand for them. The cost of graders is left out.
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
from podium.trace.store.answers import PastAnswers
from podium.workers.pool import Pool
from podium.workers.traits import costly_workers

PLANS = 300
"""The number of random plans whose price is estimated."""


@dataclass(frozen=True, slots=True)
class WorkerEstimate:
    """The calls, tokens and dollars of one plan, as means over random plans."""

    workload: Workload
    by_steps: Mapping[int, float]
    """Likely dollars of a plan, for each number of steps."""
    paid: bool
    """Whether any worker costs money. If so, only such workers count; if not, all count and nothing is paid."""


def estimate_workers(
    settings: ScoringSettings,
    pool: Pool,
    tasks: Sequence[Task],
    *,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> WorkerEstimate:
    """Estimate what plans for these tasks need. The same arguments give the same figures.

    Args:
        past: earlier answers by the worker's name. For other workers the length of a response is assumed.
    """
    random = Random(f"estimate/{settings.seed}")
    source = PoolSampler(pool, settings.pool_sampling)
    real = {worker.profile.name for worker in costly_workers(pool)}
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
    by_steps = {steps: fmean(costs) for steps, costs in sorted(dollars.items())}
    return WorkerEstimate(Workload.of(plans, pool), by_steps, paid=bool(real))
