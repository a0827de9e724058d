"""The baseline of one worker: it gets the whole question and no help."""

from __future__ import annotations

from dataclasses import dataclass

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import position_of, written
from podium.planner import Plan, PlanRequest
from podium.workflow import Step, Workflow


@dataclass(frozen=True, slots=True)
class Single:
    """One step: `worker` answers the whole question."""

    worker: str
    """Its name in the pool."""

    @property
    def name(self) -> str:
        return f"single:{self.worker}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` when the pool has no such worker."""
        step = Step(worker=position_of(self.worker, request.pool), subtask=WHOLE)
        return written(request, Workflow((step,)))
