"""How much a planner's plans vary: whether it uses what it knows of a question, or repeats itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping

from podium.evals.evaluation import Evaluation
from podium.types import Value
from podium.workflow import edges, live_steps


class PlanVariety(Value):
    """The first plans of one planner, over all rollouts that have one. Only steps that the answer needs count."""

    workers_bits: float
    """Shannon's entropy of the workers of all steps, -Σ p log₂ p: 0 for one worker, log₂ n for n used equally often."""
    commonest_plan: float
    """The share of plans with the most frequent workers and access lists; subtasks may differ. 1: a constant plan."""


def measure_variety(evaluation: Evaluation) -> PlanVariety | None:
    """The variety of an evaluation's plans; None: it has no plan that was run."""
    workers: Counter[Hashable] = Counter()
    plans: Counter[Hashable] = Counter()
    for rollout in evaluation.rollouts:
        workflow = rollout.trace.rounds[0].workflow if rollout.trace.rounds else None
        if workflow is None:
            continue
        names = [rollout.trace.pool[step.worker].name for step in workflow.steps]
        workers.update(names[position] for position in live_steps(workflow))
        plans[(*names, edges(workflow))] += 1
    if not plans:
        return None
    return PlanVariety(
        workers_bits=entropy_bits(workers),
        commonest_plan=plans.most_common(1)[0][1] / plans.total(),
    )


def entropy_bits(counts: Mapping[Hashable, int]) -> float:
    """Shannon's entropy of a distribution, in bits."""
    total = sum(counts.values())
    return abs(sum(count / total * math.log2(total / count) for count in counts.values() if count))
