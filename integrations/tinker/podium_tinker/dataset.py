"""The questions of a scoring session as groups of rollouts, in an order that the seed names."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import chz
from tinker_cookbook.renderers import Renderer, get_renderer
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, RLDatasetBuilder
from tinker_cookbook.tokenizer_utils import get_tokenizer

from podium.errors import PodiumError
from podium.scoring import RolloutRequest, Score, ScoringBackend, ScoringClient
from podium.types import Message
from podium_tinker.env import PodiumEnv

T = TypeVar("T")


@dataclass(frozen=True)
class EndingScoring:
    """A `ScoringBackend` whose errors end the process: the cookbook would leave one group after the other out, and
    sample on.

    The budget is spent, the service is gone, or has other tasks: no later rollout would fare better.
    """

    scoring: ScoringBackend

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        """See `ScoringBackend.prompt`."""
        return await _or_end(self.scoring.prompt(request))

    async def score(self, request: RolloutRequest) -> Score:
        """See `ScoringBackend.score`."""
        return await _or_end(self.scoring.score(request))


async def _or_end(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except PodiumError as error:
        raise SystemExit(str(error)) from error


@dataclass(frozen=True)
class PodiumGroupBuilder(EnvGroupBuilder):
    """The rollouts of one question in one batch."""

    scoring: ScoringBackend
    renderer: Renderer
    task: str
    group: str
    size: int

    async def make_envs(self) -> Sequence[PodiumEnv]:
        named = RolloutRequest(task=self.task, group=self.group)
        requests = [named.model_copy(update={"rollout": rollout}) for rollout in range(self.size)]
        return [PodiumEnv(self.scoring, self.renderer, request) for request in requests]


@dataclass(frozen=True)
class PodiumDataset(RLDataset):
    """Batches of groups; each epoch has an order of its own, and what does not fill a batch is left out of it."""

    scoring: ScoringBackend
    renderer: Renderer
    tasks: tuple[str, ...]
    groups_per_batch: int
    group_size: int
    epochs: int = 1
    seed: int = 42

    def __len__(self) -> int:
        return self.epochs * self._batches

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        epoch, place = divmod(index, self._batches)
        order = Random(f"questions/{self.seed}/{epoch}").sample(self.tasks, len(self.tasks))
        first = place * self.groups_per_batch
        return [
            PodiumGroupBuilder(
                self.scoring, self.renderer, task, group=f"{self.seed}/{index}", size=self.group_size
            )
            for task in order[first : first + self.groups_per_batch]
        ]

    @property
    def _batches(self) -> int:
        """Batches of an epoch."""
        return len(self.tasks) // self.groups_per_batch


@chz.chz
class PodiumDatasetBuilder(RLDatasetBuilder):
    """The dataset of a running `podium score-server`."""

    url: str
    model_name: str
    """Whose tokenizer is used."""
    renderer_name: str
    groups_per_batch: int
    group_size: int
    epochs: int = 1
    seed: int = 42
    key_env: str | None = None
    """The environment variable that holds the service's key."""

    @chz.init_property
    def scoring(self) -> ScoringClient:
        """The service's client, the caller's to close."""
        return ScoringClient(self.url, key=None if self.key_env is None else os.environ.get(self.key_env))

    async def __call__(self) -> tuple[PodiumDataset, None]:
        tasks = (await self.scoring.info()).tasks
        if len(tasks) < self.groups_per_batch:
            raise ValueError(
                f"The service has {len(tasks)} tasks, which do not fill a batch; set groups_per_batch to at most "
                f"{len(tasks)}."
            )
        return PodiumDataset(
            EndingScoring(self.scoring),
            get_renderer(self.renderer_name, get_tokenizer(self.model_name)),
            tasks,
            groups_per_batch=self.groups_per_batch,
            group_size=self.group_size,
            epochs=self.epochs,
            seed=self.seed,
        ), None
