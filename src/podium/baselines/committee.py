"""A committee: several workers answer once each, side by side, and a vote decides, plain or weighted.

Which workers, and how much each vote weighs, is chosen on questions apart from those it is compared on
(`podium.evals.recorded`). The vote is cast by the pool's tool.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import position_of, voting_step, written
from podium.errors import ConfigError
from podium.planner import Plan, PlanRequest
from podium.workflow import Step, Workflow


@dataclass(frozen=True, slots=True)
class Committee:
    """The answers of `workers`, one of whom may be named several times, then a vote."""

    workers: tuple[str, ...]
    weights: tuple[float, ...] = ()
    """A vote's weight for each, from 0 to 1000; none: all count alike."""

    def __post_init__(self) -> None:
        if not self.workers:
            raise ConfigError("A committee needs at least 1 worker.")
        if self.weights and len(self.weights) != len(self.workers):
            raise ConfigError(
                f"A committee of {len(self.workers)} workers has {len(self.weights)} weights; give one for each."
            )

        for weight in self.weights:
            if not 0 <= weight <= 1000:
                raise ConfigError(f"A vote cannot weigh {weight:g}; give weights from 0 to 1000.")

    @property
    def name(self) -> str:
        members = "+".join(
            f"{count}x{worker}" if count > 1 else worker for worker, count in Counter(self.workers).items()
        )
        return f"{'weighted-' if self.weights else ''}committee:{members}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The answers and the vote; `ConfigError` when the pool lacks a worker or the vote."""
        steps = tuple(Step(position_of(worker, request.pool), WHOLE) for worker in self.workers)
        if len(steps) == 1:
            return written(request, Workflow(steps))
        return written(request, Workflow((*steps, voting_step(request.pool, self.weights))))
