"""A task set whose tasks are all there: shuffled by a seed, so that the first few are a fair sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podium.errors import NoTasksError
from podium.lab import chance
from podium.tasks.task import Task


class ListedTasks:
    """The first `size` of some tasks, in an order that the seed names; a larger size adds tasks behind them.

    Args:
        name: as reports and traces call it.
        size: None: all; it is never more than that.
        seed: None: in the order given.
        notes: what was left out, and what fell short, in sentences.

    Raises:
        NoTasksError: there are none.
    """

    def __init__(
        self,
        name: str,
        tasks: Iterable[Task],
        *,
        size: int | None = None,
        seed: int | None = 0,
        notes: Sequence[str] = (),
    ) -> None:
        listed = list(tasks) if seed is None else shuffled(tasks, seed)
        if not listed:
            why = "; ".join(notes) or "its source is empty"
            raise NoTasksError(f"{name} has no tasks ({why}); take another split, or look at its source.")
        self.name = name
        self.notes = tuple(notes)
        self._tasks = listed[:size]

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: int) -> Task:
        return self._tasks[index]

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)


def shuffled(tasks: Iterable[Task], seed: int) -> list[Task]:
    """Tasks in an order that depends on their ids and the seed alone: rows may move in their file, and come to it."""
    return sorted(tasks, key=lambda task: chance("listed", seed, task.id))
