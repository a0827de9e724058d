"""The oracle: a planner that is told what each question needs. A bound, not a competitor.

What a question needs is known to the maker of the tasks alone, so it is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podium.baselines.plans import written
from podium.planner import Plan, PlanRequest
from podium.types import Profile, Question
from podium.workflow import Workflow

PlanFor = Callable[[Question, Sequence[Profile]], Workflow]
"""The best known workflow for a question over a pool."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """Asks `plan_for`, which knows the answer's derivation."""

    plan_for: PlanFor
    name: str = "oracle"

    async def plan(self, request: PlanRequest) -> Plan:
        """The workflow of `plan_for`."""
        return written(request, self.plan_for(request.question, request.pool))
