"""Self-Refine (Madaan et al. 2023, arXiv 2303.17651): one worker answers, criticises its answer and refines it.

It sees all earlier answers and criticisms. It stops when its criticism says that nothing has to change, or after a
number of refinements (the paper: 4). The answer is the latest version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from podium.errors import ConfigError
from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    Workflow,
    plan_rounds,
    worker_step,
    workflow_plan,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.planners.rounds import all_rounds

CRITICISE = (
    "Criticise the latest answer shown: name each error and each gap, and how to repair it. Do not answer the question "
    "yourself. If nothing has to change, write only: NO CHANGES NEEDED"
)
REFINE = "Mend the latest answer shown by the criticism shown. Write the whole answer anew."
_STOP = re.compile(r"^\W*no changes needed\W*$", re.IGNORECASE | re.MULTILINE)
_MAX_ITERATIONS = 20


@dataclass(frozen=True, slots=True)
class SelfRefine(Planner):
    """`worker` answers and then refines its answer up to `refinements` times."""

    worker: str
    refinements: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.refinements <= _MAX_ITERATIONS:
            raise ConfigError(
                f"Self-Refine takes 1 to {_MAX_ITERATIONS} refinements, not {self.refinements}."
            )

    @property
    def name(self) -> str:
        return f"self-refine:{self.worker}:{self.refinements}"

    @property
    def rounds(self) -> int:
        """One for each version, and one to accept: the budget may refuse the last version."""
        return self.refinements + 2

    async def plan(self, request: PlanRequest) -> Plan:
        """A version and its criticism, or the version that needs no change; `ConfigError` if the pool lacks the
        worker."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        seen: list[RoundStep] = []
        latest: RoundStep | None = None
        last = min(self.refinements, max(0, all_rounds(request) - 2))
        for number in range(last + 1):
            subtask = ANSWER_WHOLE_QUESTION if latest is None else REFINE
            steps = [worker_step(request, self.worker, subtask, sees=latest is not None)]
            if number < last:  # Nobody would read a criticism of the last version.
                steps.append(worker_step(request, self.worker, CRITICISE, reads=[0]))
            outcome = yield workflow_plan(Workflow(tuple(steps)), tuple(seen))
            if outcome.responses[0] is None:
                continue
            seen += [(number, step) for step in range(len(steps))]
            latest = (number, 0)
            criticism = outcome.responses[-1]
            if criticism is None or _STOP.search(criticism):
                break
        return latest


def _open(context: BaselineContext) -> SelfRefine:
    return SelfRefine(*context.worker_and_count("; the paper's has 4 refinements."))


BASELINE = PlannerSpec(
    "self-refine:WORKER:REFINEMENTS",
    _open,
    team_only=True,
    on_recordings=False,
)
