"""Opens a task set for verbs that ask many questions, and bounds how many they ask."""

from __future__ import annotations

from podium.cli.printable import say
from podium.errors import UsageError
from podium.tasks import ALL_TASKS, TaskSet, open_tasks, warnings_of
from podium.workers.pool import Pool

_MAX_QUESTIONS = 10_000_000
"""Questions that a command may ask: all of them are in memory."""


def open_questions(name: str, split: str, *, size: int, seed: int = 0, pool: Pool | None = None) -> TaskSet:
    """`open_tasks`, which also prints on standard error which questions were left out of the set."""
    check_question_count(size, name)
    tasks = open_tasks(name, split, size=size, seed=seed, pool=pool or ())
    for sentence in warnings_of(tasks):
        say(sentence, stderr=True)
    return tasks


def check_question_count(count: int, name: str) -> None:
    """Raise a `UsageError` if so many questions are asked for that they fill the memory."""
    if _MAX_QUESTIONS < count != ALL_TASKS:
        raise UsageError(f"--questions {count:,} of {name} are too many; ask for at most {_MAX_QUESTIONS:,}.")
