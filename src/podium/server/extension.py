"""The object `podium` in a request's body: limits, workers, planner.

What OpenAI's fields do not say. What it comes to is the service's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from podium.server.api_errors import invalid
from podium.server.body import Name, Part, Several
from podium.server.settings import ServeSettings
from podium.types import Budget

Names = Annotated[Several[Name], Field(max_length=1000)]


class Limited(Part):
    """Hard limits of one question."""

    calls: int | None = Field(default=None, ge=0, le=10**9)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=1e9)
    seconds: float | None = Field(default=None, gt=0, le=1e6)
    rounds: int | None = Field(default=None, ge=1)


class Extension(Part):
    """How a question is to be answered."""

    budget: Limited | None = None
    allow: Names | None = None
    """Workers that may be asked; none: all."""
    deny: Names | None = None
    """Workers that may not be asked."""
    max_rounds: int | None = Field(default=None, ge=1)
    """As budget.rounds; of the two the smaller holds."""
    max_steps: int | None = Field(default=None, ge=1)
    """Of a plan."""
    early_stop: bool | None = None
    """Whether those whom a vote hears are asked in turn, the cheapest first, and nobody more once it is certain."""
    planner: Name | None = None
    """None: that of the model."""
    dry_run: bool | None = None
    """Plan and estimate, and call no worker."""


NOTHING = Extension()


def to_budget(wanted: Extension, settings: ServeSettings) -> Budget:
    """The limits that `wanted` asks for.

    Raises:
        APIError: more rounds than the server gives.
    """
    limited = wanted.budget
    asked = (wanted.max_rounds, None if limited is None else limited.rounds)
    rounds = min((count for count in asked if count is not None), default=settings.budget.rounds)
    if rounds > settings.most_rounds:
        where = "podium.max_rounds" if limited is None or limited.rounds is None else "podium.budget.rounds"
        raise invalid(f"{where}: this server gives at most {settings.most_rounds} rounds.", where)
    if limited is None:
        return Budget(rounds=rounds)
    return Budget(
        calls=limited.calls, tokens=limited.tokens, usd=limited.usd, seconds=limited.seconds, rounds=rounds
    )


def to_early_stop(wanted: Extension, settings: ServeSettings) -> bool:
    """Whether votes stop once they are certain."""
    return settings.early_stop if wanted.early_stop is None else wanted.early_stop


def to_steps(wanted: Extension, settings: ServeSettings) -> int:
    """The steps that a plan may have.

    Raises:
        APIError: more than the server gives.
    """
    steps = settings.max_steps if wanted.max_steps is None else wanted.max_steps
    if steps > settings.most_steps:
        raise invalid(
            f"podium.max_steps: this server lets a plan have at most {settings.most_steps}.",
            "podium.max_steps",
        )
    return steps
