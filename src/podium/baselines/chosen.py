"""One worker for each question, chosen by a rule that somebody hands in: by the task's family, by a learned score.

The rule is made on questions apart from those it is compared on (`podium.evals.recorded`). A rule that is told the
family knows more than a Conductor is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.baselines.single import Single
from podium.planner import Plan, Situation

Choose = Callable[[str], str]
"""A question's text to the name of a worker."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The whole question to whom `choose` names."""

    name: str
    choose: Choose

    async def plan(self, situation: Situation) -> Plan:
        """The one-step plan; `ConfigError` when the pool has no such worker."""
        return await Single(self.choose(situation.question.text)).plan(situation)
