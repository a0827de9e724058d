"""Task sets whose questions are generated: the same (split, seed, index) always gives the same question."""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from podium.plugins import PluginGroup
from podium.tasks.task import Task

Split = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class GeneratedTasks(ABC):
    """The tasks of one split, in a fixed order. A subclass draws each task and has a name for the set."""

    set_name: ClassVar[str]
    warnings: ClassVar[tuple[str, ...]] = ()
    split: Split = "train"
    size: int = 500
    seed: int = 0

    @property
    def name(self) -> str:
        """The name in reports and traces."""
        return f"{self.set_name}/{self.split}"

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Task]:
        return (self[index] for index in range(self.size))

    def __getitem__(self, index: int) -> Task:
        if not 0 <= index < self.size:
            raise IndexError(f"{self.name} has {self.size} tasks; there is no task {index}")
        return self.draw(Random(f"{self.set_name}/{self.split}/{self.seed}/{index}"), index)

    @abstractmethod
    def draw(self, rng: Random, index: int) -> Task:
        """The task of this index. All randomness comes from `rng`."""


INSTALLED_GENERATED = PluginGroup[type[GeneratedTasks]]("podium.generated_tasks", "task set", ABCMeta)
"""Generated task sets that installed packages add, by their `set_name`."""
