"""A cascade: cheap workers first, and a dearer one where they disagree.

FrugalGPT (Chen et al. 2023) in its simplest form. Needs a budget of two rounds; within one
it is a vote of the cheap ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.baselines.committee import Committee
from podium.baselines.phrases import WHOLE
from podium.baselines.plans import position_of
from podium.planner import Outcome, Plan, PlanRequest
from podium.workflow import Acceptance, Step, Workflow, render


@dataclass(frozen=True, slots=True)
class Cascade:
    """`first` answer and vote; unless all of them agree, `then` answers alone, and that stands."""

    first: tuple[str, ...]
    then: str

    @property
    def name(self) -> str:
        return f"cascade:{'+'.join(self.first)}>{self.then}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The cheap ones' vote; then the dear one, or acceptance; `ConfigError` when the pool lacks one of them."""
        if not request.outcomes:
            return await Committee(self.first).plan(request)
        decision: Workflow | Acceptance = Acceptance()
        if len(request.outcomes) == 1 and not self._is_unanimous(request.outcomes[0]):
            decision = Workflow((Step(position_of(self.then, request.pool), WHOLE),))
        return Plan(text=render(decision), decision=decision)

    def _is_unanimous(self, outcome: Outcome) -> bool:
        """Whether all cheap workers gave the same answer."""
        return outcome.votes is not None and outcome.votes.agreeing == len(self.first)
