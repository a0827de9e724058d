"""The planner behind a worker's own name as a model: one call, and the worker is sent what the caller wrote.

Goes with the context style `plain`, in which messages are passed as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import plan_once, position_of
from podium.planner import Plan, PlanRequest
from podium.workflow import Step, Workflow


@dataclass(frozen=True, slots=True)
class Straight:
    """One step for `worker`, and no thought about it."""

    worker: str
    """Its name in the pool."""

    @property
    def name(self) -> str:
        return f"straight:{self.worker}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` when the pool has no such worker."""
        return plan_once(request, Workflow((Step(position_of(self.worker, request.pool), WHOLE),)))
