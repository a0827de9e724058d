"""A cascade: cheap workers first, and a dearer one where they disagree.

FrugalGPT (Chen et al. 2023) in its simplest form. Needs a budget of two rounds; within one
it is a vote of the cheap ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from podium.baselines.committee import Committee
from podium.baselines.phrases import WHOLE
from podium.baselines.plans import position_of
from podium.planner import Plan, PlanRequest
from podium.workflow import Acceptance, Step, Workflow, render

_COUNTED = re.compile(r"(\d+) of (\d+) responses agree\.")


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
        if len(request.outcomes) == 1 and not _unanimous(request.outcomes[0].response, len(self.first)):
            decision = Workflow((Step(position_of(self.then, request.pool), WHOLE),))
        return Plan(text=render(decision), decision=decision)


def _unanimous(response: str, voters: int) -> bool:
    """Whether the vote says that everybody gave the same answer."""
    counted = _COUNTED.match(response)
    return counted is not None and int(counted[1]) == voters
