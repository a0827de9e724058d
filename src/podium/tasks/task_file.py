"""Reads a task file, whose parts are task sets, and mixes the tasks of its parts.

    name = "mine"
    [[part]]
    set = "own"
    file = "questions.jsonl"
    [[part]]
    set = "inspect"
    task = "inspect_evals/gsm8k"

A mixture contains no question twice. A question in a later split of any part is left out of the earlier splits of all
parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from podium.config import Settings, load
from podium.errors import NoTasksError
from podium.tasks.sets.base import LoadedSplit, TaskSetSpec
from podium.tasks.sets.registry import AnyTaskSet
from podium.tasks.splits import disjoint_splits
from podium.tasks.task import SPLITS, Task, TaskList, shuffled


class TaskFile(Settings):
    """The content of a task file."""

    name: str = ""
    """Name in reports. Default: the name of the task file."""
    part: tuple[AnyTaskSet, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _weights_of_all_or_none(self) -> Self:
        weighted = [part.weight is not None for part in self.part]
        if any(weighted) and not all(weighted):
            label = self.part[weighted.index(False)].label
            raise ValueError(
                f"the part {label!r} has no weight but other parts do; give every part a weight, or none."
            )
        return self

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        names = [part.label for part in self.part if part.set == "own"]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"two parts of own data are called {repeated[0]!r}; give each its own name.")
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that at least one part has."""
        return tuple(split for split in SPLITS if any(split in part.splits for part in self.part))

    def open_split(self, split: str, *, size: int | None = None, seed: int = 0) -> TaskList:
        """Mix the tasks of a split of all parts, each part spread evenly over the whole.

        Without weights the mixture has all tasks of each part, or `count` of them if the part sets it. With weights the
        parts have these shares, and the mixture ends when the first part has no more tasks. Its first n tasks have
        nearly these shares too. A larger size appends tasks. The same arguments always give the same tasks.

        Args:
            seed: decides which tasks of each part come first.

        Raises:
            ConfigError: no part has a task in the split, or a file of one cannot be read.
        """
        (loaded,) = disjoint_splits(self.part, (split,)).values()
        return self._mixed(split, loaded, size=size, seed=seed)

    def open_splits(self, splits: Sequence[str], *, seed: int = 0) -> dict[str, TaskList]:
        """All tasks of several splits, as `open_split` gives them. Each source is read once. A split without tasks is
        left out.

        Raises:
            ConfigError: a file of a part cannot be read.
        """
        mixed = {}
        for split, loaded in disjoint_splits(self.part, splits).items():
            with suppress(NoTasksError):
                mixed[split] = self._mixed(split, loaded, size=None, seed=seed)
        return mixed

    def _mixed(self, split: str, loaded: Sequence[LoadedSplit], *, size: int | None, seed: int) -> TaskList:
        """The mixture of one split, given that split of each part.

        Task k of a part has the position (k + 1/2) / weight, as in Webster's method.
        """
        warnings: list[str] = []
        ends: list[float] = []
        placed: list[tuple[float, int, Task]] = []
        for number, (part, own) in enumerate(zip(self.part, loaded, strict=True)):
            warnings += [f"{part.label}: {warning}" for warning in _warnings(part, own, split)]
            tasks = shuffled(own.tasks, seed)[: part.count]
            if not tasks:
                continue
            if len(self.part) > 1:
                tasks = [replace(task, facts={"set": part.label, **task.facts}) for task in tasks]
            weight = part.weight or len(tasks)
            ends.append(len(tasks) / weight)
            placed += [((k + 0.5) / weight, number, task) for k, task in enumerate(tasks)]
        placed.sort(key=lambda place: place[:2])
        end = min(ends, default=0.0)
        mixed = [task for position, _, task in placed if position < end]
        return TaskList(f"{self.name}/{split}", mixed, size=size, seed=None, warnings=warnings)


def read_task_file(path: Path, overrides: Sequence[str] = ()) -> TaskFile:
    """Read the task file at `path`; paths in it are relative to its folder.

    Raises:
        ConfigError: the file cannot be used; the message is one sentence.
    """
    file = load(path, TaskFile, overrides)
    parts = tuple(part.with_base_dir(path.parent) for part in file.part)
    return file.model_copy(update={"name": file.name or path.stem, "part": parts})


def _warnings(part: TaskSetSpec, loaded: LoadedSplit, split: str) -> Iterator[str]:
    """Warnings about a part: rows left out, tasks missing."""
    if split not in part.splits:
        yield f"it has no split {split!r}"
        return
    yield from (f"{reason} ({count:,})" for reason, count in loaded.skipped.items())
    if not loaded.tasks:
        yield "it has no tasks in this split"
    elif len(loaded.tasks) < (part.count or 0):
        yield f"it has {len(loaded.tasks):,} tasks, but its count is {part.count:,}"
