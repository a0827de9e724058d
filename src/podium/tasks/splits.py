"""Holds splits apart: a question stands in the last of its splits alone, so what is measured is never trained on.

The order is train, validation, test. In a mixture this holds for all of its parts together. Where a source has train
and no validation, a tenth of train becomes validation, by a hash of the question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from random import Random

from podium.tasks.sets.base import LoadedSplit, TaskSetSpec, task_key
from podium.tasks.task import SPLITS, Task

IN_LATER_SPLIT = "questions that stand in a later split too"
IN_EARLIER_PART = "questions that an earlier part has too"
_VALIDATION = 0.1


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
