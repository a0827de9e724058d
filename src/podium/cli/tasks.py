"""`podium tasks`: lists task sets, shows their questions, and looks for a set's questions in other texts."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from podium.cli.options import Flag
from podium.cli.printable import counted, printable, shorten
from podium.cli.questions import open_questions
from podium.cli.terminal import open_console
from podium.errors import UsageError
from podium.rows import is_table
from podium.tasks import ALL, Task
from podium.tasks.open import SPLITS, generated_names, splits_of
from podium.tasks.overlap import Overlap, overlaps, read_texts, row_texts
from podium.tasks.sets.base import task_key
from podium.tasks.sets.registry import NAMED_SETS

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
    """The gold answer, cut off if it is long: that of a programming task is its tests, perhaps megabytes of them."""
    return printable(task.gold) if len(task.gold) <= _LONGEST else shorten(task.gold, _LONGEST)


def _written(value: str | int | tuple[str, ...]) -> str:
    return "+".join(value) if isinstance(value, tuple) else str(value)


def overlap(
    name: str,
    /,
    *,
    against: list[str],
    split: str = "train",
    questions: int | None = None,
    share: float = 0.0,
    examples: int = 10,
    json: Flag = False,
) -> int:
    """Look for the questions of a set in other sets and files; the exit status is 1 if some are found.

    Args:
        name: The set; a task file, NAME.toml; a table, NAME.csv or NAME.jsonl; or a recording, NAME.parquet.
        against: Where to look: a .jsonl, .json, .csv or .parquet file; any other file of text; or a set or task file,
            as SET:SPLIT (SET alone: its test split). May be given several times.
        split: The split whose questions are looked for.
        questions: The most questions of a set. Default: all. A generated set has no end and needs this.
        share: The share of a question's runs of 13 words that must be found, from 0 to 1. A question that is found as
            a whole always counts.
        examples: How many of the questions found are shown.
        json: Print one line of JSON, with all questions found.
    """
    if questions is not None and questions < 1:
        raise UsageError(f"--questions {questions}: give at least 1.")
    if not 0 <= share <= 1:
        raise UsageError(f"--share {share:g}: a share is from 0 to 1.")
    others = [_Other(place, questions) for place in against]
    tasks = _open(name, split, questions)
    matches = overlaps(
        [task_key(task) for task in tasks], (text for other in others for text in other.texts())
    )
    found = [one for one in matches if one.same or (one.shared and one.shared >= share)]
    unread = sum(other.unread for other in others)
    if json:
        print(json_.dumps({"set": name, "split": split, "against": against, "questions": len(tasks)}
                          | {"unread": unread, "overlaps": [_as_row(tasks, one) for one in found]}))  # fmt: skip
    else:
        _print_overlaps(tasks, found, examples)
        if unread:
            print(f"{counted(unread, 'row')} could not be read or searched.")
    return 1 if found else 0


@dataclass(slots=True)
class _Other:
    """One place to look in: a file, or SET:SPLIT."""

    place: str
    questions: int | None
    unread: int = field(default=0, init=False)
    """Rows that could not be read or searched."""

    def __post_init__(self) -> None:
        """Before anything is read, refuse a set that does not exist."""
        if not self._is_file:
            splits_of(self._set[0])

    def texts(self) -> Iterator[tuple[str, str]]:
        """All texts of the place, each as a pair: where the text stands, and the text."""
        if not self._is_file:
            for task in _open(*self._set, self.questions):
                yield task.id, task_key(task)
            return
        for row in read_texts(Path(self.place)):
            self.unread += bool(row.error)
            for text in row_texts(row):
                yield row.place, text

    @property
    def _is_file(self) -> bool:
        file = Path(self.place)
        return is_table(file) or (file.is_file() and file.suffix != ".toml")

    @property
    def _set(self) -> tuple[str, str]:
        name, _, split = self.place.rpartition(":")
        return (name, split) if name else (split, "test")


def _open(name: str, split: str, questions: int | None) -> Sequence[Task]:
    tasks = open_questions(name, split, size=questions or ALL)
    if len(tasks) >= ALL:
        raise UsageError(
            f"{name} has no end; say how many of its questions to take, as in: --questions 1000."
        )
    return list(tasks)


def _as_row(tasks: Sequence[Task], one: Overlap) -> dict[str, object]:
    task = tasks[one.place]
    return {"id": task.id, "question": task.question.text} | asdict(one)


def _print_overlaps(tasks: Sequence[Task], found: Sequence[Overlap], examples: int) -> None:
    whole = sum(one.same for one in found)
    print(
        f"{counted(len(found), 'question')} of {len(tasks):,} found: {whole:,} whole, "
        f"{len(found) - whole:,} by words that they share."
    )
    if not found or not examples:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("question", "shared", "found in", ""):
        table.add_column(column, justify="right" if column == "shared" else "left")
    for one in found[:examples]:
        task = tasks[one.place]
        shared = "whole" if one.same else f"{one.shared:.0%}"
        table.add_row(printable(task.id), shared, printable(one.where), Text(shorten(task.question.text, 60)))
    open_console().print(table)
