"""Opens a task set by the name that a command line or a configuration gives it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from podium.config import suggestion
from podium.errors import ConfigError
from podium.recordings import Recording
from podium.tasks.embedded import EmbeddedTasks, Split
from podium.tasks.mixture import TaskFile, mix, read_task_file
from podium.tasks.recorded import RecordedTasks
from podium.tasks.sets.registry import NAMED_SETS
from podium.tasks.task import TaskSet
from podium.workers.base import Worker

ALL = 10**9
"""As a size: more tasks than any set has."""
EMBEDDED = "embedded"
SPLITS: tuple[Split, ...] = get_args(Split)
"""Of the embedded tasks."""


def open_tasks(
    name: str = EMBEDDED,
    split: str = "train",
    *,
    size: int = 500,
    seed: int = 0,
    pool: Iterable[Worker] = (),
) -> TaskSet:
    """The first `size` tasks of a split.

    Args:
        name: embedded, one of `NAMED_SETS`, a task file, NAME.toml, or a recording's file, NAME.parquet.
        pool: of a recording's questions, only those that every recorded worker in it answered.

    Raises:
        ConfigError: an unknown set or split, with the nearest known one, no tasks asked for, or files that are not
            there, with what to fetch.
    """
    if size < 1:
        raise ConfigError(f"A task set of {size} tasks holds nothing to ask; ask for at least 1.")
    if name.endswith(".parquet"):
        recording = Recording.open(Path(name))
        _check(split, recording.header.splits)
        return RecordedTasks(recording, split, size=size, seed=seed, pool=pool)
    if name == EMBEDDED:
        _check(split, SPLITS)
        (known,) = [known for known in SPLITS if known == split]
        return EmbeddedTasks(known, size=size, seed=seed)
    file = _mixture(name)
    _check(split, file.splits)
    return mix(file.name, file.part, split, size=size, seed=seed)


def splits_of(name: str) -> tuple[str, ...]:
    """The splits that a task set has.

    Raises:
        ConfigError: an unknown set, with the nearest known one.
    """
    if name.endswith(".parquet"):
        return tuple(Recording.open(Path(name)).header.splits)
    return SPLITS if name == EMBEDDED else _mixture(name).splits


def _mixture(name: str) -> TaskFile:
    """A task file, or a named set as one of a single part."""
    if name.endswith(".toml"):
        return read_task_file(Path(name))
    if name in NAMED_SETS:
        return TaskFile(name=name, part=(NAMED_SETS[name](),))
    raise ConfigError(f"There is no task set {name!r}; {suggestion(name, (EMBEDDED, *NAMED_SETS))}")


def _check(split: str, splits: Iterable[str]) -> None:
    if split not in splits:
        raise ConfigError(f"There is no split {split!r}; {suggestion(split, splits)}")
