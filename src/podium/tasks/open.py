"""Opens a task set by the name that a command line or a configuration gives it.

This is the one entry to all task sets: generated questions, benchmarks, task files, tables and recordings.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from podium.config import suggestion
from podium.errors import ConfigError, NoTasksError
from podium.files.tables import is_table
from podium.plugins import PluginGroup
from podium.recordings import Recording
from podium.tasks.recorded import RecordedTasks
from podium.tasks.sets.custom import CustomSet
from podium.tasks.sets.registry import installed_set_names, named_set
from podium.tasks.task import SPLITS, GeneratedTasks, TaskSet
from podium.tasks.task_file import TaskFile, read_task_file
from podium.workers.base import Worker

ALL_TASKS = 10**9
"""A size that means all tasks of a set."""
_GENERATED = PluginGroup[type[GeneratedTasks]]("podium.generated_tasks", "task set", ABCMeta)
"""Generated task sets that installed packages add, by their `set_name`."""


def generated_names() -> tuple[str, ...]:
    """The task sets whose questions are generated, so that there are as many as one asks for."""
    return tuple(_GENERATED.names)


def generated_set(name: str) -> type[GeneratedTasks] | None:
    """The generated task set of this name, or None if there is none.

    Raises:
        ConfigError: it is of an installed package, and cannot be loaded.
    """
    return _GENERATED.find(name)


def open_tasks(
    name: str,
    split: str = "train",
    *,
    size: int = 500,
    seed: int = 0,
    pool: Iterable[Worker] = (),
) -> TaskSet:
    """Open the first `size` tasks of a split.

    Args:
        name: one of `generated_names()`, a `named_set`, a task file (NAME.toml), a table of one's own (NAME.csv,
            NAME.jsonl; `CustomSet.from_table`) or a recording (NAME.parquet).
        pool: for a recording: only questions that every recorded worker of this pool answered are opened.

    Raises:
        ConfigError: an unknown set or split, a size below 1, or missing files; the message names the nearest
            known name, or what to fetch.
    """
    if size < 1:
        raise ConfigError(f"A task set of {size} tasks is empty; open at least 1.")
    if name.endswith(".parquet"):
        recording = Recording.open(Path(name))
        _check(split, recording.header.splits)
        return RecordedTasks(recording, split, size=size, seed=seed, pool=pool)
    if (generated := generated_set(name)) is not None:
        _check(split, SPLITS)
        (known_split,) = [known for known in SPLITS if known == split]
        return generated(known_split, size=size, seed=seed)
    file = _mixture(name)
    _check(split, file.splits)
    return file.open_split(split, size=size, seed=seed)


def open_splits(name: str, splits: Sequence[str], *, seed: int = 0) -> dict[str, TaskSet]:
    """All tasks of several splits, without splits that have none. What is read from files is read once.

    Raises:
        ConfigError: as for `open_tasks`.
    """
    if not is_mixture(name):
        opened: dict[str, TaskSet] = {}
        for split in splits:
            with suppress(NoTasksError):
                opened[split] = open_tasks(name, split, size=ALL_TASKS, seed=seed)
        return opened
    file = _mixture(name)
    for split in splits:
        _check(split, file.splits)
    return dict(file.open_splits(splits, seed=seed))


def is_mixture(name: str) -> bool:
    """Whether a task set is read from files in which all splits lie: it is neither generated nor a recording."""
    return not name.endswith(".parquet") and name not in generated_names()


def splits_of(name: str) -> tuple[str, ...]:
    """The splits that a task set has.

    Raises:
        ConfigError: an unknown set; the message names the nearest known one.
    """
    if name.endswith(".parquet"):
        return tuple(Recording.open(Path(name)).header.splits)
    return SPLITS if name in generated_names() else _mixture(name).splits


def user_files(name: str) -> tuple[Path, ...]:
    """The user's own files that a task file names; none for another task set."""
    if not name.endswith(".toml"):
        return ()
    own = (part for part in _mixture(name).part if isinstance(part, CustomSet))
    return tuple(file for part in own for file in (part.file, *part.files.values()) if file is not None)


def _mixture(name: str) -> TaskFile:
    """The task file of a name; a named set or a table is one with a single part."""
    if not name:
        raise ConfigError("No questions are named: give a task set, a table or a recording as tasks.")
    if name.endswith(".toml"):
        return read_task_file(Path(name))
    if is_table(Path(name)):
        part = CustomSet.from_table(Path(name))
        return TaskFile(name=part.label, part=(part,))
    if (spec := named_set(name)) is not None:
        return TaskFile(name=name, part=(spec.model_validate({}),))
    if name in installed_set_names():
        raise ConfigError(f"The task set {name!r} needs settings; name it in a task file, NAME.toml.")
    known = (*generated_names(), *installed_set_names())
    way_out = suggestion(name, known) if known else "give a table, NAME.csv, or a task file, NAME.toml."
    raise ConfigError(f"There is no task set {name!r}; {way_out}")


def _check(split: str, splits: Iterable[str]) -> None:
    if split not in splits:
        raise ConfigError(f"There is no split {split!r}; {suggestion(split, splits)}")
