"""Self-consistency: one worker answers several times, the most frequent answer wins (Wang et al. 2022).

The vote is cast by a worker of the pool, the built-in tool named "vote": a baseline only writes plans.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.baselines.committee import Committee
from podium.errors import ConfigError
from podium.planner import Plan, PlanRequest


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """`samples` answers of `worker`, side by side, then a vote. One sample is the single worker."""

    worker: str
    samples: int

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigError(f"Self-consistency needs at least 1 sample, not {self.samples}.")

    @property
    def name(self) -> str:
        return f"self-consistency:{self.worker}:{self.samples}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The samples and the vote; `ConfigError` when the pool lacks the worker or the vote."""
        return await Committee((self.worker,) * self.samples).plan(request)
