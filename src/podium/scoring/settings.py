"""What a scoring session needs to know: questions, pool, prompt, limits and reward.

A training run's configuration holds the same keys, so the service can be started from the run's own file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from podium.conductor.prompt import PromptSettings
from podium.config import Settings
from podium.rollout import RewardSettings
from podium.rollout.random_pools import PoolSampling


class ScoringSettings(Settings):
    """How plans are prompted for, run and rewarded."""

    tasks: str = ""
    """Whatever `podium tasks` knows: a task set's name, a task file (NAME.toml), a table (NAME.csv, NAME.jsonl) or a
    recording (NAME.parquet). Its train split alone is used."""
    task_limit: int | None = Field(default=None, ge=1)
    """The most tasks of the split that are used. Without a limit all are."""
    held_out: tuple[str, ...] = ()
    """Task sets that the policy will be evaluated on, or splits of them, as "mine.csv:test". A training question that
    is in one of them, whole or with most of its words, is an overlap (`on_overlap`). The other splits of
    `tasks` are always held out."""
    on_overlap: Literal["refuse", "leave_out"] = "refuse"
    """What to do with overlaps: "refuse" the run, or "leave_out" the questions and warn how many there were."""
    pool: str = ""
    """The name of a shipped pool, or a pool file."""
    pool_sampling: PoolSampling = PoolSampling()
    """Which workers of the pool a question may use."""
    prompt: PromptSettings = PromptSettings()
    """The prompt for a plan; the trained checkpoint keeps these settings."""
    max_steps: int = Field(default=5, ge=1)
    """The most steps of a plan."""
    rounds: int = Field(default=1, ge=1)
    """The most plans of a rollout. With several the policy sees the result of its plan, and accepts or plans again."""
    early_stop: bool = False
    """Whether a vote calls no more workers once its result is certain."""
    reward: RewardSettings = RewardSettings()
    cost_weights: tuple[float, ...] = ()
    """Reward lost for each dollar at each level of cost sensitivity of the prompt, in place of `reward.cost`."""
    seed: int = 42
    """Seeds the order of the questions, the pools and the workers' randomness."""

    @property
    def scoring(self) -> dict[str, Any]:
        """The settings of this class alone, as JSON has them: without those that a training run adds."""
        return self.model_dump(mode="json", include=set(ScoringSettings.model_fields))

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `scoring`: equal for settings that score alike."""
        return hashlib.sha256(json.dumps(self.scoring, sort_keys=True).encode()).hexdigest()[:16]
