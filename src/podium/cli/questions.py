"""The questions that a verb asks: opens a task set, and says on stderr what was left out of it."""

from __future__ import annotations

from podium.cli.opening import open_console
from podium.cli.printable import printable
from podium.tasks import TaskSet, open_tasks, warnings_of
from podium.workers.pool import Pool


def open_questions(name: str, split: str, *, size: int, seed: int = 0, pool: Pool | None = None) -> TaskSet:
    """As `open_tasks`, told."""
    tasks = open_tasks(name, split, size=size, seed=seed, pool=pool or ())
    console = open_console(stderr=True)
    for sentence in warnings_of(tasks):
        console.print(printable(sentence), soft_wrap=True)
    return tasks
