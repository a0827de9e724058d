"""A worker or a committee for each question, by a rule that somebody hands in: by its family, by a learned score.

The rule is made on questions apart from those it is compared on (`podium.evals.recorded`). A rule that is told the
family knows more than a Conductor is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.baselines.committee import Committee
from podium.baselines.single import Single
from podium.planner import Plan, PlanRequest

Choose = Callable[[str], str | Committee]
"""A question's text to the name of a worker, or to several and a vote."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The whole question to whom `choose` names."""

    name: str
    choose: Choose

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan; `ConfigError` when the pool has no such worker."""
        chosen = self.choose(request.question.text)
        return await (Single(chosen) if isinstance(chosen, str) else chosen).plan(request)
