"""A cost-aware router: each question goes to the worker whose rating promises the most for its price.

A rating is a worker's accuracy and mean dollars on the question's cluster (`podium.workers.ratings`). The rule is that
of RouteLLM and its kin in its simplest form: maximise accuracy minus price times dollars. It calls no model to decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podium.errors import ConfigError
from podium.planners.baseline import PlannerSpec
from podium.planners.planner import Planner, PlanRequest
from podium.planners.voting import Single
from podium.trace import Plan
from podium.types import Profile


@dataclass(frozen=True, slots=True)
class RatingRouter(Planner):
    """Sends the whole question to the worker with the highest accuracy - `per_usd` x dollars, by the ratings. `per_usd`
    is the accuracy that a dollar has to buy: at 10, an answer that costs a cent more must be right 10 percentage points
    more often. At 0 only accuracy counts; of equal workers the cheapest answers."""

    per_usd: float = 0.0

    @property
    def name(self) -> str:
        return f"by-ratings:{self.per_usd:.12g}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` if no worker of the pool has a rating."""
        return await Single(self.choose(request.pool)).plan(request)

    def choose(self, pool: Sequence[Profile]) -> str:
        """The name of the chosen worker. Workers without a rating are never chosen."""
        rated = [(profile.name, profile.rating) for profile in pool if profile.rating is not None]
        if not rated:
            raise ConfigError(
                f'The planner {self.name} chooses by ratings, and this pool has none; add ratings = "FILE" to the pool '
                "file (podium rate and podium study write one)."
            )
        worth = {
            name: (rating.accuracy - self.per_usd * rating.cost_usd, -rating.cost_usd)
            for name, rating in rated
        }
        return max(worth, key=lambda name: worth[name])


def parse_accuracy_per_usd(text: str, name: str, example: str) -> float:
    """The accuracy that a dollar has to buy; `ConfigError`, with the planner's name, if `text` is no such number."""
    try:
        per_usd = float(text)
    except ValueError:
        per_usd = -1.0
    if not 0 <= per_usd < math.inf:
        raise ConfigError(
            f"The baseline {name!r} needs the accuracy that a dollar has to buy, a number from 0 on, such as {example}."
        )
    return per_usd


BASELINE = PlannerSpec(
    "by-ratings:PER_USD",
    lambda context: RatingRouter(parse_accuracy_per_usd(context.argument, context.name, "by-ratings:0")),
    team_only=True,
)
