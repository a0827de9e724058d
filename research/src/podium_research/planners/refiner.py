"""Generator, verifier, refiner: the roles of MALT (Motwani et al. 2024, arXiv 2412.01928) at inference.

The generator answers, the verifier criticises the answer, the refiner mends it by the criticism. This happens three
times, independently, and the three refined answers are voted on. MALT also trains each role; this does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium.planners.baseline import plan_once, voting_step
from podium.plugin_api.planners import (
    Access,
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Step,
    Workflow,
    worker_step,
)
from podium.types import ANSWER_WHOLE_QUESTION

VERIFY = (
    "Verify the answer shown step by step. Say which steps are wrong and why, or that all are right. Do not write a "
    "new answer."
)
REFINE = "Mend the answer shown where the verification shown is right, and answer the whole question."
SAMPLES = 3
_FORM = "generator-verifier-refiner:G>V>R"


@dataclass(frozen=True, slots=True)
class GeneratorVerifierRefiner(Planner):
    """Three workers in a chain, `SAMPLES` chains, and a vote."""

    generator: str
    verifier: str
    refiner: str

    @property
    def name(self) -> str:
        return f"generator-verifier-refiner:{self.generator}>{self.verifier}>{self.refiner}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The chains and the vote; `ConfigError` if the pool lacks a worker or the vote."""
        steps: list[Step] = []
        for first in range(0, 3 * SAMPLES, 3):
            steps += [
                worker_step(request, self.generator, ANSWER_WHOLE_QUESTION),
                worker_step(request, self.verifier, VERIFY, reads=[first]),
                worker_step(request, self.refiner, REFINE, reads=[first, first + 1]),
            ]
        refined = Access(steps=tuple(range(2, 3 * SAMPLES, 3)))
        return plan_once(request, Workflow((*steps, replace(voting_step(request.pool), access=refined))))


def _open(context: BaselineContext) -> GeneratorVerifierRefiner:
    return GeneratorVerifierRefiner(*(worker for (worker,) in context.layers))


BASELINE = PlannerSpec(
    _FORM,
    _open,
    votes=True,
    team_only=True,
    on_recordings=False,
)
