"""`podium tasks`: lists task sets, and shows their questions."""

from __future__ import annotations

import json as json_
import sys
from typing import Any

from rich.table import Table
from rich.text import Text

from podium.cli.options import Flag
from podium.cli.printable import printable, shorten
from podium.cli.questions import open_questions
from podium.cli.terminal import open_console
from podium.errors import ConfigError, UsageError
from podium.tasks import Task
from podium.tasks.open import SPLITS, generated_names
from podium.tasks.sets.registry import installed_set_names, named_set

_LONGEST = 2000
"""Longer gold answers are cut off after this many characters."""


def list_sets(*, json: Flag = False) -> int:
    """List the task sets.

    Args:
        json: Print a JSON array.
    """
    sets = [
        {"name": name, "splits": SPLITS, "source": "generated", "licence": "Apache-2.0"}
        for name in generated_names()
    ]
    for name in installed_set_names():
        try:
            spec = named_set(name)
        except ConfigError as error:
            print(f"podium: {printable(str(error))}", file=sys.stderr)
            continue
        if spec is not None:
            splits = spec.model_validate({}).splits
            sets.append({"name": name, "splits": splits, "source": spec.source, "licence": spec.licence})
    if json:
        print(json_.dumps(sets))
        return 0
    table = Table()
    for column in ("set", "splits", "source", "licence"):
        table.add_column(column)
    for task_set in sets:
        table.add_row(
            str(task_set["name"]),
            ", ".join(task_set["splits"]),
            str(task_set["source"]),
            str(task_set["licence"]),
        )
    console = open_console()
    console.print(table)
    console.print(
        "A table of your own is a set, too: NAME.csv or NAME.jsonl with the columns question and answer. A task file, "
        "NAME.toml, names other columns and graders, or mixes sets."
    )
    return 0


def show(
    name: str,
    /,
    *,
    split: str = "train",
    samples: int = 5,
    first: int = 0,
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Show tasks of a set: each question with its gold answer and its facts, such as its family.

    Args:
        name: The set; a task file, NAME.toml; a table, NAME.csv or NAME.jsonl; or a recording, NAME.parquet.
        split: train, validation or test.
        samples: How many tasks.
        first: The number of the first task, counted from 0.
        seed: Chooses the questions: the same seed and number always give the same question.
        json: Print a JSON array.
    """
    if samples < 1 or first < 0:
        raise UsageError(
            f"--samples {samples}, --first {first}: give at least 1 sample, and a first number from 0 on."
        )
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
    """The gold answer, cut off if it is long: a programming task's are its tests, perhaps megabytes of them."""
    return printable(task.gold) if len(task.gold) <= _LONGEST else shorten(task.gold, _LONGEST)


def _written(value: str | int | tuple[str, ...]) -> str:
    return "+".join(value) if isinstance(value, tuple) else str(value)
