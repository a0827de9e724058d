"""Evaluates a planner with one adversarial worker in each of its plans: `measure_influence` counts what that spoils.

The planner plans as always and does not see the adversary. Then one step of its plan, chosen by position, goes to a
worker that stands for the chosen one and misleads (`adversarial_worker`). All other steps get the same random numbers
as without the adversary. A worker that does several steps may give its samples of a recording or of the cache in
another order, since the adversary takes one of its turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium.conductor.prompt import renumber_workers
from podium.evals.evaluation import Evaluation, evaluate
from podium.planner import Planner, PlannerWrapper, PlanRequest
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Plan
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workflow import Workflow, needed_steps
from podium_research.measures.adversarial_worker import AdversarialWorker
from podium_research.measures.influence import POSITIONS, Position

_SUFFIX = " (adversary)"


async def attack(
    planner: Planner,
    tasks: Sequence[Task],
    pool: Pool,
    positions: Sequence[Position] = POSITIONS,
) -> dict[Position, Evaluation]:
    """Evaluate a planner with the adversary at each position."""
    attacked = adversarial_pool(pool)
    return {
        position: await evaluate(Runner(WithAdversary(planner, position), attacked), tasks)
        for position in positions
    }


def adversarial_pool(pool: Pool) -> Pool:
    """The pool, and at its end an adversary for each worker that is no tool."""
    replays = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    return pool.joined(
        [
            AdversarialWorker(worker, worker.profile.name + _SUFFIX, others=replays)
            for worker in pool
            if not worker.is_tool
        ]
    )


@dataclass(frozen=True, slots=True)
class WithAdversary(PlannerWrapper):
    """Gives one step of the planner's workflow to an adversary of a pool that `adversarial_pool` made. Tools are never
    replaced.
    """

    position: Position

    @property
    def name(self) -> str:
        return self.planner.name

    async def plan(self, request: PlanRequest) -> Plan:
        """The planner's plan with the adversary in it; unchanged if no step of it can be given to one."""
        honest = [k for k, profile in enumerate(request.pool) if not profile.name.endswith(_SUFFIX)]
        numbers = {profile.name: k for k, profile in enumerate(request.pool)}
        adversaries = {k: numbers.get(request.pool[k].name + _SUFFIX) for k in honest}
        shown_number = {k: number for number, k in enumerate(honest)}
        shown_number |= {
            adversary: shown_number[k] for k, adversary in adversaries.items() if adversary is not None
        }
        earlier_rounds = tuple(
            replace(earlier_round, workflow=renumber_workers(earlier_round.workflow, shown_number))
            for earlier_round in request.earlier_rounds
        )
        pool = tuple(request.pool[k] for k in honest)
        plan = await self.planner.plan(replace(request, pool=pool, earlier_rounds=earlier_rounds))
        if not isinstance(plan.decision, Workflow):
            return plan
        workflow = renumber_workers(plan.decision, dict(enumerate(honest)))
        open_ = [k for k in needed_steps(workflow) if adversaries[workflow.steps[k].worker] is not None]
        if not open_:
            return replace(plan, decision=workflow)
        position = open_[{"first": 0, "middle": (len(open_) - 1) // 2, "last": -1}[self.position]]
        adversary = {position: adversaries[workflow.steps[position].worker]}
        steps = tuple(
            replace(step, worker=adversary.get(k) or step.worker) for k, step in enumerate(workflow.steps)
        )
        reason = f"Step {position} went to an adversary, to measure its influence."
        return replace(plan, decision=Workflow(steps), reason=reason)
