"""The oracle's plans for embedded tasks. It knows each hop of the question and the ability of every specialist."""

from __future__ import annotations

from collections.abc import Sequence

from podium.errors import ConfigError
from podium.lab import read_problem
from podium.planners.baseline import PlanFor
from podium.types import Profile, Question
from podium.workers.base import Worker
from podium.workers.specialist import Specialist
from podium.workflow import Access, Step, Workflow


def embedded_oracle(workers: Sequence[Worker]) -> PlanFor:
    """Make the function that plans a question: one step for each hop, done by the ablest specialist.

    Among equally able specialists the cheapest is chosen. Each step sees only the steps whose results it takes, so
    branches run concurrently.

    Raises:
        ConfigError: none of the workers is a specialist, so no ability is known.
    """
    specialists = {i: worker for i, worker in enumerate(workers) if isinstance(worker, Specialist)}
    if not specialists:
        raise ConfigError("The oracle knows only the abilities of simulated specialists; this pool has none.")

    def ablest(skill: str) -> int:
        return max(
            specialists,
            key=lambda i: (
                specialists[i].ability.get(skill, 0.0),
                -specialists[i].profile.price.output,
                -i,
            ),
        )

    def plan_for(question: Question, pool: Sequence[Profile]) -> Workflow:
        problem = read_problem(question.text)
        if problem is None:
            return Workflow((Step(next(iter(specialists)), question.text),))
        return Workflow(
            tuple(
                Step(ablest(hop.operation.skill), f"Only this: {hop.clause}", Access(steps=hop.sources))
                for hop in problem.hops
            )
        )

    return plan_for
