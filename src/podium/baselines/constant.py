"""The constant plan: one workflow for every question, whatever is asked.

The control that a Conductor must beat to have learned anything about questions. The search for the best one
lives in `podium.evals.search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium.baselines.plans import position_of, written
from podium.errors import ConfigError
from podium.planner import Plan, PlanRequest
from podium.workflow import PlanError, Workflow, parse


@dataclass(frozen=True, slots=True)
class Constant:
    """The same workflow always. Workers are kept by name, so that a permuted pool changes nothing."""

    workflow: Workflow
    workers: tuple[str, ...]
    """Worker k of `workflow` is the one with this name."""
    name: str = "constant"

    async def plan(self, request: PlanRequest) -> Plan:
        """The workflow, renumbered for the situation's pool; `ConfigError` when it lacks a worker."""
        steps = tuple(
            replace(step, worker=position_of(self.workers[step.worker], request.pool))
            for step in self.workflow.steps
        )
        return written(request, Workflow(steps))


def read_constant(text: str, workers: Sequence[str], *, name: str, max_steps: int = 5) -> Constant:
    """A constant plan from the text of a workflow; `ConfigError` with the caret when it is not one."""
    decision = parse(text, workers=len(workers), max_steps=max_steps)
    if isinstance(decision, PlanError):
        raise ConfigError(f"The plan of {name} cannot be read: {decision}")
    if not isinstance(decision, Workflow):
        raise ConfigError(f"The plan of {name} has no steps; it needs at least one.")
    return Constant(workflow=decision, workers=tuple(workers), name=name)
