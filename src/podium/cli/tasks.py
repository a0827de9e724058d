"""`podium tasks`: which task sets there are, and what their questions look like."""

from __future__ import annotations

import json as json_
from typing import Any

from rich.text import Text

from podium.cli.opening import open_console
from podium.cli.options import Flag
from podium.cli.printable import printable
from podium.errors import UsageError
from podium.tasks import Task, open_tasks
from podium.tasks.open import SPLITS, TASK_SETS


def list_sets(*, json: Flag = False) -> int:
    """List the task sets.

    Args:
        json: Print a JSON array.
    """
    if json:
        print(json_.dumps([{"name": name, "splits": SPLITS} for name in TASK_SETS]))
    else:
        for name in TASK_SETS:
            print(f"{name}: {', '.join(SPLITS)}")
    return 0


def show(
    name: str = "embedded",
    /,
    *,
    split: str = "train",
    samples: int = 5,
    first: int = 0,
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Show tasks of a set: the question, the answer, and what is known of it.

    Args:
        name: The set.
        split: train, validation or test.
        samples: How many.
        first: Number of the first, from 0.
        seed: Names the questions: the same seed and number give the same one for ever.
        json: Print a JSON array.
    """
    if samples < 1 or first < 0:
        raise UsageError(f"--samples {samples}, --first {first}: give at least 1 sample, from 0 on.")
    tasks = open_tasks(name, split, size=first + samples, seed=seed)
    shown = [tasks[index] for index in range(first, min(first + samples, len(tasks)))]
    if json:
        print(json_.dumps([_document(task) for task in shown]))
        return 0
    console = open_console()
    for task in shown:
        facts = ", ".join(f"{key} {_written(value)}" for key, value in task.facts.items())
        console.print(Text.assemble((task.id, "bold"), (f"  {facts}", "dim")))
        console.print(Text(printable(task.question.text)), soft_wrap=True)
        console.print(Text.assemble(("→ ", "green"), (printable(task.gold), "cyan"), "\n"))
    return 0


def _document(task: Task) -> dict[str, Any]:
    return {"id": task.id, "question": task.question.text, "gold": task.gold, "facts": dict(task.facts)}


def _written(value: str | int | tuple[str, ...]) -> str:
    return "+".join(value) if isinstance(value, tuple) else str(value)
