"""The settings of a team: its workers, its planner, the limits of a question, and its files.

`Team.of_settings` opens a team with them. `inspect eval` accepts the same settings as -M arguments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from podium.orchestrator.planner_settings import PlannerSettings
from podium.types import Budget


class TeamSettings(PlannerSettings):
    """The planner, the pool, and the limits of a question."""

    pool: str = "embedded"
    """The workers: a TOML file, or a shipped pool's name."""
    max_steps: int | None = Field(default=None, ge=1)
    """The most steps of a plan. None: as many as its Conductor was trained with, else 5."""
    early_stop: bool = False
    """Whether a vote calls no more workers once its result is certain."""
    rounds: int | None = Field(default=None, ge=1)
    """The most plans for a question. None: as many as its Conductor was trained with, else 1."""
    budget_calls: int | None = Field(default=None, ge=0)
    """The most worker calls for a question."""
    budget_tokens: int | None = Field(default=None, ge=0)
    """The most tokens for a question, of workers and planner together."""
    budget_usd: float | None = Field(default=None, ge=0)
    """The most dollars for a question."""
    budget_seconds: float | None = Field(default=None, gt=0)
    """The most seconds for a question."""
    day_budget_usd: float | None = Field(default=None, ge=0)
    """The most dollars that all commands of a day (UTC) may cost together; None: $PODIUM_DAY_BUDGET_USD."""
    cache: Path | None = None
    """The SQLite file of the response cache; None: no cache."""
    replay: bool = False
    """Answer from the response cache alone."""
    store: Path | None = None
    """The SQLite file of traces; None: the file of `podium ask`."""
    no_store: bool = False
    """Store no traces."""

    @model_validator(mode="after")
    def _from_a_cache(self) -> Self:
        if self.replay and self.cache is None:
            raise ValueError("replay answers from a response cache; name its file with cache.")
        return self

    @property
    def budget(self) -> Budget:
        """The limits of one question, with 1 round where none is given."""
        return Budget(
            rounds=self.rounds or 1,
            calls=self.budget_calls,
            tokens=self.budget_tokens,
            usd=self.budget_usd,
            seconds=self.budget_seconds,
        )
