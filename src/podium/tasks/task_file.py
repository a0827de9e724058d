"""Reads a task file, whose parts are task sets, and mixes the tasks of its parts.

    name = "mine"
    [[part]]
    set = "own"
    file = "questions.jsonl"
    [[part]]
    set = "inspect"
    task = "inspect_evals/gsm8k"

A mixture contains no question twice. A question stands in the last of its splits (train, validation, test) alone, over
all parts together, so what is measured is never trained on. Where a source has train and no validation, a tenth of
train becomes validation, by a hash of the question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Self

from pydantic import Field, model_validator

from podium.config import Settings, load
from podium.errors import NoTasksError
from podium.tasks.sets.base import LoadedSplit, TaskSetSpec, task_key
from podium.tasks.sets.registry import AnyTaskSet
from podium.tasks.task import SPLITS, Task, TaskList, shuffled

IN_LATER_SPLIT = "questions that stand in a later split too"
IN_EARLIER_PART = "questions that an earlier part has too"
_VALIDATION = 0.1


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


# --- splits --------------------------------------------------------------------------------------------


def disjoint_splits(parts: Sequence[TaskSetSpec], splits: Sequence[str]) -> dict[str, list[LoadedSplit]]:
    """Splits of each part, without questions of the parts before it and of any part's later splits.

    Each source is read once, and only what is needed: the splits, and those after them. A part that lacks a split has
    no tasks there.

    Raises:
        ConfigError: a part cannot be read.
    """
    alone = len(parts) == 1 and parts[0].is_disjoint
    later = [] if alone else [other for split in splits for other in later_splits(split)]
    by_part = [_read(part, {*splits, *later}) for part in parts]
    disjoint: dict[str, list[LoadedSplit]] = {}
    for split in splits:
        measured = {
            task_key(task)
            for by_split in by_part
            for other in later_splits(split)
            for task in by_split.get(other, LoadedSplit(())).tasks
        }
        seen: set[str] = set()
        disjoint[split] = []
        for by_split in by_part:
            kept = _exclude(by_split.get(split, LoadedSplit(())), measured, IN_LATER_SPLIT)
            kept = _exclude(kept, seen, IN_EARLIER_PART)
            seen.update(key for task in kept.tasks for key in (task_key(task), task.id))
            disjoint[split].append(kept)
    return disjoint


def later_splits(split: str) -> tuple[str, ...]:
    """The splits after this one, whose questions it may not share."""
    return SPLITS[SPLITS.index(split) + 1 :] if split in SPLITS else ()


def _read(part: TaskSetSpec, splits: Iterable[str]) -> Mapping[str, LoadedSplit]:
    """These splits of a part, as far as it has them, and those that are read with them."""
    carved = "validation" not in part.source_splits
    needed = {"train" if carved and split == "validation" else split for split in splits}
    loaded = dict(part.read_splits([split for split in part.source_splits if split in needed]))
    if carved and "train" in loaded:
        train = loaded["train"]
        held_out = {task.id for task in train.tasks if _is_held_out(task)}
        for split in ("train", "validation"):
            own = [task for task in train.tasks if (task.id in held_out) == (split == "validation")]
            loaded[split] = LoadedSplit(tuple(own), train.skipped)
    return loaded


def _is_held_out(task: Task) -> bool:
    return Random(f"validation/{task_key(task)}").random() < _VALIDATION


def _exclude(loaded: LoadedSplit, taken: Collection[str], reason: str) -> LoadedSplit:
    """Leave out the tasks whose key or id is taken, and count them under the reason."""
    kept = tuple(task for task in loaded.tasks if task_key(task) not in taken and task.id not in taken)
    dropped = len(loaded.tasks) - len(kept)
    if not dropped:
        return loaded
    return LoadedSplit(kept, {**loaded.skipped, reason: loaded.skipped.get(reason, 0) + dropped})
