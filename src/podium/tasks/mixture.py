"""A task file: the parts that a user's task set is made of, each a set, and how they are mixed.

    name = "mine"
    [[part]]
    set = "own"
    file = "questions.jsonl"
    [[part]]
    set = "gsm8k"

Nothing stands in it twice. A question of a part's later split is left out of the earlier splits of all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from podium.config import Settings, load
from podium.tasks.sets.base import (
    IN_LATER_SPLIT,
    SPLIT_ORDER,
    LoadedSplit,
    TaskSetSpec,
    exclude,
    later_splits,
    task_key,
)
from podium.tasks.sets.registry import AnyTaskSet
from podium.tasks.task import Task, TaskList, shuffled

IN_EARLIER_PART = "questions that stand in an earlier part too"


class TaskFile(Settings):
    """What a task file holds."""

    name: str = ""
    """What reports call it; empty: the name of the task file."""
    part: tuple[AnyTaskSet, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _weights_of_all_or_none(self) -> Self:
        weighted = [part.weight is not None for part in self.part]
        if any(weighted) and not all(weighted):
            label = self.part[weighted.index(False)].label
            raise ValueError(f"the part {label!r} has no weight and others do; give each part one, or none.")
        return self

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        names = [part.label for part in self.part if part.set == "own"]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"two parts of own data are called {twice[0]!r}; give each its own name.")
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """Those that one of its parts has."""
        return tuple(split for split in SPLIT_ORDER if any(split in part.splits for part in self.part))


def read_task_file(path: Path, overrides: Sequence[str] = ()) -> TaskFile:
    """The task file at `path`; its paths are seen from its folder.

    Raises:
        ConfigError: it cannot be used, in one sentence.
    """
    file = load(path, TaskFile, overrides)
    parts = tuple(part.with_base_dir(path.parent) for part in file.part)
    return file.model_copy(update={"name": file.name or path.stem, "part": parts})


def mix(
    name: str, parts: Sequence[TaskSetSpec], split: str, *, size: int | None = None, seed: int = 0
) -> TaskList:
    """The tasks of a split of all parts, each part spread evenly over the whole.

    Without weights it holds all tasks of each part, `count` at most. With weights the parts have these shares, and it
    ends where one of them has no more. Shares hold for its first tasks too, however many; a larger size adds tasks
    behind the others, and the same arguments give the same tasks for ever.

    Args:
        name: as the task file calls it, or the set.
        seed: of the tasks of each part, which come first.

    Raises:
        ConfigError: no part has a task in the split, or a file of one cannot be read.
    """
    warnings: list[str] = []
    drawn: list[_PartTasks] = []
    for part, reading in zip(parts, _disjoint_splits(parts, split), strict=True):
        tasks = shuffled(reading.tasks, seed)[: part.count]
        warnings += [f"{part.label}: {note}" for note in _notes(part, reading, split)]
        if tasks:
            named = tasks if len(parts) == 1 else [_with_set(task, part.label) for task in tasks]
            drawn.append(_PartTasks(named, part.weight or len(tasks)))
    return TaskList(f"{name}/{split}", _interleave(drawn), size=size, seed=None, warnings=warnings)


@dataclass(frozen=True, slots=True)
class _PartTasks:
    """The tasks of a part, and its share."""

    tasks: Sequence[Task]
    weight: float


def _disjoint_splits(parts: Sequence[TaskSetSpec], split: str) -> list[LoadedSplit]:
    """The readings of a split, a part each, none of which has a question of another or of any part's later split."""
    wanted = (split,) if len(parts) == 1 else (split, *later_splits(split))
    read = [part.read_splits([one for one in wanted if one in part.splits]) for part in parts]
    later = {
        task_key(task)
        for readings in read
        for other, reading in readings.items()
        if other != split
        for task in reading.tasks
    }
    seen: set[str] = set()
    disjoint = []
    for readings in read:
        kept = exclude(readings.get(split, LoadedSplit(())), later, IN_LATER_SPLIT)
        kept = exclude(kept, seen, IN_EARLIER_PART)
        seen.update(key for task in kept.tasks for key in (task_key(task), task.id))
        disjoint.append(kept)
    return disjoint


def _notes(part: TaskSetSpec, reading: LoadedSplit, split: str) -> Iterator[str]:
    """What is to be told of a part."""
    if split not in part.splits:
        yield f"it has no split {split!r}"
        return
    yield from (f"{reason} ({count:,})" for reason, count in reading.skipped.items())
    if not reading.tasks:
        yield "it has no tasks in this split"
    elif len(reading.tasks) < (part.count or 0):
        yield f"it has {len(reading.tasks):,} tasks, and {part.count:,} are wanted"


def _with_set(task: Task, label: str) -> Task:
    return replace(task, facts={"set": label, **task.facts})


def _interleave(drawn: Sequence[_PartTasks]) -> list[Task]:
    """All parts in one sequence: task k of a part stands at (k + 1/2) / weight, as Webster's method deals seats."""
    end = min((len(part.tasks) / part.weight for part in drawn), default=0.0)
    placed = [
        ((k + 0.5) / part.weight, number, task)
        for number, part in enumerate(drawn)
        for k, task in enumerate(part.tasks)
    ]
    return [task for place, _, task in sorted(placed, key=lambda one: one[:2]) if place < end]
