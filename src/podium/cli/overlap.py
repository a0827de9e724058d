"""`podium tasks overlap`: which questions of a task set stand in another set, or in any file."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table
from rich.text import Text

from podium.cli.opening import open_console
from podium.cli.options import Flag
from podium.cli.printable import counted, printable, shorten
from podium.cli.questions import open_questions
from podium.errors import UsageError
from podium.rows import is_table
from podium.tasks import ALL, Task
from podium.tasks.open import splits_of
from podium.tasks.overlap import Overlap, overlaps, read_texts, row_texts
from podium.tasks.sets.base import task_key


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
    """Look for the questions of a set elsewhere; exit status 1 where some are found.

    Args:
        name: The set; or a task file, NAME.toml; or a recording, NAME.parquet.
        against: Where to look: a .jsonl, .json, .csv or .parquet file; any other file of text; or a set or task file,
            as SET:SPLIT (SET alone: its test split). May be given several times.
        split: The questions that are looked for.
        questions: So many of a set, at most. Default: all; a set that is made on the spot needs it.
        share: Of a question's runs of 13 words this share must be found, from 0 to 1; one that is found whole counts
            always.
        examples: How many are shown.
        json: Print one line of JSON, with all that were found.
    """
    if questions is not None and questions < 1:
        raise UsageError(f"--questions {questions}: give at least 1.")
    if not 0 <= share <= 1:
        raise UsageError(f"--share {share:g}: a share is from 0 to 1.")
    others = [_Other(place, questions) for place in against]
    asked = _open(name, split, questions)
    met = overlaps([task_key(task) for task in asked], (text for other in others for text in other.texts()))
    found = [one for one in met if one.same or (one.shared and one.shared >= share)]
    unread = sum(other.unread for other in others)
    if json:
        print(json_.dumps({"set": name, "split": split, "against": against, "questions": len(asked)}
                          | {"unread": unread, "overlaps": [_document(asked, one) for one in found]}))  # fmt: skip
    else:
        _print(asked, found, examples)
        if unread:
            print(f"{counted(unread, 'row')} could not be read, so nothing was looked for there.")
    return 1 if found else 0


@dataclass(slots=True)
class _Other:
    """Where questions are looked for: a file, or SET:SPLIT."""

    place: str
    questions: int | None
    unread: int = field(default=0, init=False)
    """Rows that could not be read."""

    def __post_init__(self) -> None:
        """Refuses what is not there before anything is read."""
        if not self._is_file:
            splits_of(self._set[0])

    def texts(self) -> Iterator[tuple[str, str]]:
        """All of its texts, each behind its place."""
        if not self._is_file:
            for task in _open(*self._set, self.questions):
                yield task.id, task_key(task)
            return
        for row in read_texts(Path(self.place)):
            self.unread += bool(row.complaint)
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
        raise UsageError(f"{name} has no end; say how many of its questions are meant, as: --questions 1000.")
    return list(tasks)


def _document(asked: Sequence[Task], one: Overlap) -> dict[str, object]:
    task = asked[one.place]
    return {"id": task.id, "question": task.question.text} | asdict(one)


def _print(asked: Sequence[Task], found: Sequence[Overlap], examples: int) -> None:
    whole = sum(one.same for one in found)
    print(
        f"{counted(len(found), 'question')} of {len(asked):,} found: {whole:,} whole, "
        f"{len(found) - whole:,} by words that they share."
    )
    if not found or not examples:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("question", "shared", "found in", ""):
        table.add_column(column, justify="right" if column == "shared" else "left")
    for one in found[:examples]:
        task = asked[one.place]
        shared = "whole" if one.same else f"{one.shared:.0%}"
        table.add_row(printable(task.id), shared, printable(one.where), Text(shorten(task.question.text, 60)))
    open_console().print(table)
