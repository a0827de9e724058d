"""Small datasets of the hub, in the true form of each: its files, all of its columns, their types.

The questions are ours. Each dataset holds what the real ones hold and a reader may stumble over: a question that stands
in two splits, and rows that are broken.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium.tasks.sets.base import LoadedSplit
from podium.tasks.task import Task
from podium.tasks.task_file import disjoint_splits
from podium_research.task_sets.hub import DATA_VARIABLE, HubSet

TEXT, TEXTS, WHOLE = pa.string(), pa.list_(pa.string()), pa.int64()
Rows = Sequence[Mapping[str, Any]]
Said = Callable[[Task], str]
"""A response to a task."""


@dataclass(frozen=True, slots=True)
class Table:
    """One file of a dataset."""

    columns: Mapping[str, pa.DataType]
    """In order; of a file that is not parquet their names alone count."""
    rows: Rows


@dataclass(frozen=True, slots=True)
class Case:
    """A dataset, the set that reads it, and what is known of both."""

    spec: HubSet
    files: Mapping[str, Table]
    """By OWNER/NAME/FILE."""
    sizes: Mapping[str, int]
    """Tasks of each split."""
    right: Said
    """The dataset's own answer, as a response."""
    wrong: Sequence[Said]
    """Responses that earn nothing."""
    broken: Mapping[str, Sequence[str]]
    """By split, what is said of each row that is no task."""


def lay(folder: Path, files: Mapping[str, Table]) -> None:
    """Write files of datasets below a folder."""
    for name, table in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            schema = pa.schema(list(table.columns.items()))
            pq.write_table(pa.Table.from_pylist([dict(row) for row in table.rows], schema=schema), path)
        elif path.suffix == ".jsonl":
            lines = [json.dumps({c: row[c] for c in table.columns if c in row}) for row in table.rows]
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        else:
            with path.open("w", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, list(table.columns), restval="")
                writer.writeheader()
                writer.writerows(table.rows)


def options_of(task: Task) -> dict[str, str]:
    """The options that a question shows, by letter."""
    lines = (line.partition(". ") for line in task.question.text.splitlines())
    return {letter: option for letter, dot, option in lines if dot and len(letter) == 1}


def letter_of(task: Task, option: str) -> str:
    """The letter under which a question shows an option."""
    return next(letter for letter, shown in options_of(task).items() if shown == option)


def ends(line: str) -> Said:
    """A response that names the right answer on its way, and ends in a line of its own."""
    return lambda task: (
        f"Many would say {task.gold}, and {task.gold} is what I thought first. But no.\n{line.format(gold=task.gold)}"
    )


def opened(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> HubSet:
    """The set of a case, whose files are laid into the user's folder of datasets."""
    lay(folder, case.files)
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    return case.spec


def apart(spec: HubSet) -> dict[str, LoadedSplit]:
    """All splits, held apart."""
    return {split: loaded for split, (loaded,) in disjoint_splits([spec], spec.splits).items()}


def all_tasks(spec: HubSet) -> list[Task]:
    """The tasks of all splits."""
    return [task for loaded in apart(spec).values() for task in loaded.tasks]
