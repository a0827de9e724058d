"""`podium tasks`: which task sets there are, and what their questions look like."""

from __future__ import annotations

import json as json_
from typing import Any

from rich.table import Table
from rich.text import Text

from podium.cli.opening import open_console
from podium.cli.options import Flag
from podium.cli.printable import printable, shorten
from podium.cli.questions import open_questions
from podium.errors import UsageError
from podium.tasks import Task
from podium.tasks.open import EMBEDDED, SPLITS
from podium.tasks.sets.registry import NAMED_SETS

_LONGEST = 2000
"""Characters of a gold answer that are shown."""


def list_sets(*, json: Flag = False) -> int:
    """List the task sets.

    Args:
        json: Print a JSON array.
    """
    sets = [{"name": EMBEDDED, "splits": SPLITS, "source": "made on the spot", "licence": "Apache-2.0"}]
    sets += [
        {
            "name": name,
            "splits": spec.model_validate({}).splits,
            "source": spec.source,
            "licence": spec.licence,
        }
        for name, spec in NAMED_SETS.items()
    ]
    if json:
        print(json_.dumps(sets))
        return 0
    table = Table()
    for column in ("set", "splits", "source", "licence"):
        table.add_column(column)
    for one in sets:
        table.add_row(str(one["name"]), ", ".join(one["splits"]), str(one["source"]), str(one["licence"]))
    console = open_console()
    console.print(table)
    console.print("A task file, NAME.toml, brings your own questions or mixes sets.")
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
        name: The set; or a task file, NAME.toml; or a recording, NAME.parquet.
        split: train, validation or test.
        samples: How many.
        first: Number of the first, from 0.
        seed: Names the questions: the same seed and number give the same one for ever.
        json: Print a JSON array.
    """
    if samples < 1 or first < 0:
        raise UsageError(f"--samples {samples}, --first {first}: give at least 1 sample, from 0 on.")
    tasks = open_questions(name, split, size=first + samples, seed=seed)
    shown = [tasks[index] for index in range(first, min(first + samples, len(tasks)))]
    if json:
        print(json_.dumps([_document(task) for task in shown]))
        return 0
    console = open_console()
    for task in shown:
        facts = ", ".join(f"{key} {_written(value)}" for key, value in task.facts.items())
        console.print(Text.assemble((task.id, "bold"), (f"  {facts}", "dim")))
        console.print(Text(printable(task.question.text)), soft_wrap=True)
        console.print(Text.assemble(("→ ", "green"), (_gold(task), "cyan"), "\n"))
    return 0


def _document(task: Task) -> dict[str, Any]:
    return {"id": task.id, "question": task.question.text, "gold": task.gold, "facts": dict(task.facts)}


def _gold(task: Task) -> str:
    """Whole, but for tests of programs, which may have megabytes."""
    return printable(task.gold) if len(task.gold) <= _LONGEST else shorten(task.gold, _LONGEST)


def _written(value: str | int | tuple[str, ...]) -> str:
    return "+".join(value) if isinstance(value, tuple) else str(value)
