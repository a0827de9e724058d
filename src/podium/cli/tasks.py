"""`podium tasks`: lists task sets, and shows their questions."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from podium.cli.options import JSONArray
from podium.cli.printable import print_columns, printable, say, shorten
from podium.cli.questions import open_questions
from podium.cli.terminal import open_console, print_json
from podium.errors import ConfigError, UsageError
from podium.tasks.open import generated_names
from podium.tasks.sets.registry import installed_set_names, named_set
from podium.tasks.task import SPLITS

_LONGEST = 2000
"""Longer gold answers are cut off after this many characters."""


def list_sets(*, json: JSONArray = False) -> int:
    """List the task sets."""
    sets: list[dict[str, Any]] = [
        {"name": name, "splits": SPLITS, "source": "generated", "licence": "Apache-2.0"}
        for name in generated_names()
    ]
    for name in installed_set_names():
        try:
            spec = named_set(name)
        except ConfigError as error:
            say(f"podium: {error}", stderr=True)
            continue
        if spec is not None:
            splits = spec.model_validate({}).splits
            sets.append({"name": name, "splits": splits, "source": spec.source, "licence": spec.licence})
    if json:
        print_json(sets)
        return 0
    rows = [(row["name"], ", ".join(row["splits"]), row["source"], row["licence"]) for row in sets]
    print_columns([("set", "splits", "source", "licence"), *rows])
    say(
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
    json: JSONArray = False,
) -> int:
    """Show tasks of a set: each question with its gold answer and its facts, such as its family.

    Args:
        name: The set; a task file, NAME.toml; a table, NAME.csv or NAME.jsonl; or a recording, NAME.parquet.
        split: train, validation or test.
        samples: How many tasks.
        first: The number of the first task, counted from 0.
        seed: Chooses the questions: the same seed and number always give the same question.
    """
    if samples < 1 or first < 0:
        raise UsageError(
            f"--samples {samples}, --first {first}: give at least 1 sample, and a first number from 0 on."
        )
    tasks = open_questions(name, split, size=first + samples, seed=seed)
    shown = [tasks[index] for index in range(first, min(first + samples, len(tasks)))]
    if json:
        print_json(
            [
                {"id": task.id, "question": task.question.text, "gold": task.gold, "facts": dict(task.facts)}
                for task in shown
            ]
        )
        return 0
    console = open_console()
    for task in shown:
        facts = ", ".join(
            f"{key} {'+'.join(value) if isinstance(value, tuple) else value}"
            for key, value in task.facts.items()
        )
        # A programming task's gold answer is its tests, perhaps megabytes of them.
        gold = printable(task.gold) if len(task.gold) <= _LONGEST else shorten(task.gold, _LONGEST)
        console.print(Text.assemble((task.id, "bold"), (f"  {facts}", "dim")))
        console.print(Text(printable(task.question.text)), soft_wrap=True)
        console.print(Text.assemble(("→ ", "green"), (gold, "cyan"), "\n"))
    return 0
