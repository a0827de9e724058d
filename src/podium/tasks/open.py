"""Opens a task set by the name that a command line or a configuration gives it."""

from __future__ import annotations

from typing import get_args

from podium.config import nearest
from podium.errors import ConfigError
from podium.tasks.embedded import EmbeddedTasks, Split
from podium.tasks.task import TaskSet

TASK_SETS = ("embedded",)
"""Names that `open_tasks` knows."""
SPLITS: tuple[Split, ...] = get_args(Split)


def open_tasks(name: str = "embedded", split: str = "train", *, size: int = 500, seed: int = 0) -> TaskSet:
    """The first `size` tasks of a split.

    Raises:
        ConfigError: an unknown set or split, with the nearest known one, or no tasks asked for.
    """
    if name not in TASK_SETS:
        raise ConfigError(_unknown("task set", name, TASK_SETS))
    if size < 1:
        raise ConfigError(f"A task set of {size} tasks holds nothing to ask; ask for at least 1.")
    for known in SPLITS:
        if split == known:
            return EmbeddedTasks(known, size=size, seed=seed)
    raise ConfigError(_unknown("split", split, SPLITS))


def _unknown(what: str, given: str, known: tuple[str, ...]) -> str:
    meant = nearest(given, known)
    return f"There is no {what} {given!r}; " + (
        f"did you mean {meant!r}?" if meant else f"known: {', '.join(known)}."
    )
