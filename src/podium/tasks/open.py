"""Opens a task set by the name that a command line or a configuration gives it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from podium.config import nearest
from podium.errors import ConfigError
from podium.recordings import Recording
from podium.tasks.embedded import EmbeddedTasks, Split
from podium.tasks.recorded import RecordedTasks
from podium.tasks.task import TaskSet
from podium.workers.base import Worker

ALL = 10**9
"""As a size: more tasks than any recording has."""
TASK_SETS = ("embedded",)
"""Names that `open_tasks` knows."""
SPLITS: tuple[Split, ...] = get_args(Split)


def open_tasks(
    name: str = "embedded",
    split: str = "train",
    *,
    size: int = 500,
    seed: int = 0,
    pool: Iterable[Worker] = (),
) -> TaskSet:
    """The first `size` tasks of a split.

    Args:
        name: one of `TASK_SETS`, or a recording's file, NAME.parquet.
        pool: of a recording's questions, only those that every recorded worker in it answered.

    Raises:
        ConfigError: an unknown set or split, with the nearest known one, or no tasks asked for.
    """
    if size < 1:
        raise ConfigError(f"A task set of {size} tasks holds nothing to ask; ask for at least 1.")
    if name.endswith(".parquet"):
        recording = Recording.open(Path(name))
        if split not in recording.header.splits:
            raise ConfigError(_unknown("split", split, tuple(recording.header.splits)))
        return RecordedTasks(recording, split, size=size, seed=seed, pool=pool)
    if name not in TASK_SETS:
        raise ConfigError(_unknown("task set", name, TASK_SETS))
    for known in SPLITS:
        if split == known:
            return EmbeddedTasks(known, size=size, seed=seed)
    raise ConfigError(_unknown("split", split, SPLITS))


def _unknown(what: str, given: str, known: tuple[str, ...]) -> str:
    meant = nearest(given, known)
    return f"There is no {what} {given!r}; " + (
        f"did you mean {meant!r}?" if meant else f"known: {', '.join(known)}."
    )
