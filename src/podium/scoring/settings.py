"""The settings of a scoring session: questions, pool, prompt, limits and reward.

A training run's configuration has the same keys, so the service can be started from the run's own file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from podium.conductor.prompt import PromptSettings
from podium.config import Settings
from podium.rollout import RewardSettings
from podium.rollout.pool_sampling import PoolSampling
from podium.types import MessageLayout


class ScoringSettings(Settings):
    """How plans are prompted for, run and rewarded."""

    tasks: str = ""
    """The questions, as `podium tasks` knows them: a task set's name, a task file (NAME.toml), a table (NAME.csv,
    NAME.jsonl) or a recording (NAME.parquet). Only the train split is used."""
    task_limit: int | None = Field(default=None, ge=1)
    """The most tasks of the split that are used. Default: all."""
    held_out: tuple[str, ...] = ()
    """Task sets that the policy will be evaluated on, or splits of them, such as "mine.csv:test". A training question
    that is in one of them, exactly or with most of its words, is an overlap (`on_overlap`). The other splits of `tasks`
    are always held out."""
    on_overlap: Literal["refuse", "leave_out"] = "refuse"
    """What to do with overlaps: "refuse" the run, or "leave_out" the questions and warn of their number."""
    solved_in: str = ""
    """A recording, NAME.parquet. Training questions that no recorded worker answered right are left out, since a group
    of plans whose answers are all wrong teaches only form and price. So are those that only a team would solve.
    Questions that are not in it stay."""
    pool: str = ""
    """The name of a shipped pool, or a team file."""
    pool_sampling: PoolSampling = PoolSampling()
    """Which workers of the pool a question may use."""
    prompt: PromptSettings = PromptSettings()
    """The prompt for a plan. The trained checkpoint keeps these settings."""
    max_steps: int = Field(default=5, ge=1)
    """The most steps of a plan."""
    rounds: int = Field(default=1, ge=1)
    """The most plans of a rollout. With several, the policy sees the result of its plan, and accepts it or plans
    again."""
    early_stop: bool = False
    """Whether a vote calls no more workers once its result is certain."""
    layout: MessageLayout = "packed"
    """How a worker sees earlier work: as fenced blocks in one message, or as exchanges of a chat."""
    reward: RewardSettings = RewardSettings()
    cost_weights: tuple[float, ...] = ()
    """For each level of cost sensitivity of the prompt, the reward lost for each dollar, in place of `reward.cost`."""
    seed: int = 42
    """Seeds the order of the questions, the pools and the workers' randomness."""

    @property
    def scoring(self) -> dict[str, Any]:
        """The settings of this class as JSON, without those that a training run adds.

        Files are without their folders, since a service and its clients may find the same file in different places.
        """
        return self.model_dump(mode="json", include=set(ScoringSettings.model_fields)) | {
            "tasks": _file_name(self.tasks),
            "solved_in": _file_name(self.solved_in),
            "held_out": [_file_name(name) for name in self.held_out],
            "pool": _file_name(self.pool),
        }

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `scoring`. Settings with equal digests score alike if
        their files of one name have one content."""
        return hashlib.sha256(json.dumps(self.scoring, sort_keys=True).encode()).hexdigest()[:16]


def _file_name(name: str) -> str:
    """The name of a file without its folder. The name of a task set or of a shipped pool stays, since it has no
    suffix of letters."""
    return Path(name).name if Path(name).suffix[1:2].isalpha() else name
