"""Random plans: valid, and chosen without a look at the question. What planning by chance is worth."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.baselines.phrases import PHRASES
from podium.baselines.plans import written
from podium.planner import Plan, PlanRequest
from podium.types import NAMED_BY
from podium.workflow import Access, Step, Workflow


@dataclass(frozen=True, slots=True)
class RandomPlans:
    """A fresh random workflow for each question, the same one for the same seed and question."""

    seed: str = "0"
    name: str = "random"

    async def plan(self, request: PlanRequest) -> Plan:
        """A random valid plan for the situation's pool."""
        random = Random(f"random-plans/{self.seed}/{request.seed}/{request.question.text[:NAMED_BY]}")
        workflow = random_workflow(random, workers=len(request.pool), max_steps=request.max_steps)
        return written(request, workflow)


def random_workflow(random: Random, *, workers: int, max_steps: int) -> Workflow:
    """A valid first-round workflow: the number of steps, then each step's parts, drawn uniformly."""
    steps = random.randint(1, max_steps)
    return Workflow(tuple(_random_step(random, position, workers) for position in range(steps)))


def _random_step(random: Random, position: int, workers: int) -> Step:
    return Step(
        worker=random.randrange(workers),
        subtask=random.choice(PHRASES),
        access=_random_access(random, position),
    )


def _random_access(random: Random, position: int) -> Access:
    """None, all or some of the earlier steps, each a third of the time; the first step sees none."""
    if position == 0:
        return Access()
    kind = random.choice(("none", "all", "some"))
    if kind == "some":
        size = random.randint(1, position)
        return Access(steps=tuple(sorted(random.sample(range(position), size))))
    return Access(all=kind == "all")
