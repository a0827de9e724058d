"""A planner for plans that are already written: the completions that a trainer sampled.

It parses and nothing else, so that a sampled text is run exactly as a live Conductor's would be.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.planner import Plan, PlanRequest
from podium.workflow import parse


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """Answers every situation with the same text."""

    text: str
    name: str = "written"

    async def plan(self, situation: PlanRequest) -> Plan:
        """Parse the text against the situation's pool; what cannot be read is an error value."""
        decision = parse(
            self.text,
            workers=len(situation.pool),
            max_steps=situation.max_steps,
            later_round=bool(situation.outcomes),
        )
        return Plan(text=self.text, decision=decision)
