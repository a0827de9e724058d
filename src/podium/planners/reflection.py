"""Self-reflection: one worker answers, then answers again and again with all its attempts in view. The last one counts.

It is the baseline "5 turns with all attempts in context" of the Conductor's paper (arXiv 2512.04388, appendix A.3).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import ConfigError
from podium.planners.baseline import PlannerSpec, plan_once, worker_number
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workflow import Access, Step, Workflow

AGAIN = "Reflect on the attempts shown and check them for errors. Then answer the whole question again."
_MAX_TURNS = 50
"""A turn reads all turns before it, so the tokens of a question grow with the square of their number."""


@dataclass(frozen=True, slots=True)
class SelfReflection(Planner):
    """`worker` writes `turns` answers, one after another, and sees all its earlier ones."""

    worker: str
    turns: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.turns <= _MAX_TURNS:
            raise ConfigError(f"Self-reflection takes 1 to {_MAX_TURNS} turns, not {self.turns}.")

    @property
    def name(self) -> str:
        return f"self-reflection:{self.worker}:{self.turns}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The chain of turns; `ConfigError` if the pool lacks the worker."""
        worker = worker_number(self.worker, request.pool)
        again = Step(worker, AGAIN, Access(all=True))
        return plan_once(
            request, Workflow((Step(worker, ANSWER_WHOLE_QUESTION), *[again] * (self.turns - 1)))
        )


BASELINE = PlannerSpec(
    "self-reflection:WORKER:TURNS",
    lambda context: SelfReflection(*context.worker_and_count("; the paper's has 5 turns.")),
    team_only=True,
    on_recordings=False,
)
