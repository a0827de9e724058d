"""What all task sets share: settings, as a TOML file may give them, that read the tasks of a split.

Rows become tasks in one place, `read_tasks`, so that for every set a row that cannot be a task is either refused by its
location or counted. `podium.tasks.task_file` holds the splits apart.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from podium.config import Settings
from podium.errors import ConfigError
from podium.files.tables import Row
from podium.tasks.graders.base import GraderSettings
from podium.tasks.overlap import question_key
from podium.tasks.sets.prompts import strip_prompt
from podium.tasks.task import SPLITS, Task
from podium.types import Question

BadRow = Literal["refuse", "skip"]
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|(?<= )\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Sample:
    """The question, answer and grader that a row of a dataset states."""

    text: str
    """The question as workers get it, with its prompt."""
    gold: str
    id: str
    """The id of the row, unique within the set."""
    facts: Mapping[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    content: str = ""
    """The question without its prompt, by which questions are compared; by default `text` without our own prompts."""
    grader: GraderSettings | None = None
    """The grader of this row. Default: the grader of the other rows."""


@dataclass(frozen=True, slots=True)
class LoadedSplit:
    """The tasks of one split."""

    tasks: tuple[Task, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many rows were left out, by reason."""


class TaskSetSpec(Settings):
    """Base of all task sets: the settings of one, as a TOML table gives them."""

    source: ClassVar[str] = ""
    """Where its rows are from, for people. Empty if the settings say it."""
    licence: ClassVar[str] = ""
    is_disjoint: ClassVar[bool] = False
    """Whether no two splits of its source share a question."""
    set: str
    """The name of the set in task files and on command lines."""
    weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The share of the set in a mixture, relative to the weights of the other parts."""
    count: int | None = Field(default=None, ge=1)
    """At most this many tasks of each split go into a mixture."""

    @property
    def label(self) -> str:
        """What reports and mixtures call it."""
        return self.set

    @property
    @abstractmethod
    def source_splits(self) -> tuple[str, ...]:
        """The splits that its source has, of train, validation and test."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that it has: a part of train is validation, if its source has none."""
        carved = ("validation",) if "train" in self.source_splits else ()
        return tuple(split for split in SPLITS if split in (*self.source_splits, *carved))

    @abstractmethod
    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        """Read all tasks of some of `source_splits`, in the source's order.

        Raises:
            ConfigError: files are missing (the message says what to fetch), or a row is refused.
        """

    def with_base_dir(self, folder: Path) -> Self:
        """The same set, with its relative paths taken from a folder."""
        return self


def read_tasks(
    rows: Iterable[Row],
    record_to_sample: Callable[[Mapping[str, Any]], Sample | None],
    grader: GraderSettings,
    *,
    name: str,
    on_bad_row: BadRow = "refuse",
) -> LoadedSplit:
    """Make tasks of rows.

    Args:
        record_to_sample: returns the sample that a row states, or None if the row is not wanted, and not counted. It
            raises ValueError, TypeError or LookupError if the row is broken.
        grader: judges the answers to all rows that have no grader of their own.
        name: the name of the set; task ids begin with it.

    Raises:
        ConfigError: a row cannot be a task, and bad rows are refused; the message names its location.
    """
    tasks: dict[str, Task] = {}
    skipped: Counter[str] = Counter()
    for row in rows:
        try:
            if row.error:
                raise ValueError(row.error)
            sample = _sample_of(row.values, record_to_sample)
            if sample is None:
                continue
            task = _task(sample, sample.grader or grader, name, tasks)
        except ValueError as error:
            if on_bad_row == "refuse":
                raise ConfigError(
                    f'{row.location}: {error}; fix the row, or set on_bad_row = "skip".'
                ) from None
            skipped[_DETAIL.sub("…", str(error))] += 1
        else:
            tasks[task.id] = task
    return LoadedSplit(tuple(tasks.values()), dict(skipped))


def task_key(task: Task) -> str:
    """The key by which the question of a task is compared with others: normalised, and without its prompt."""
    return task.key or question_key(strip_prompt(task.question.text))


def _sample_of(
    values: Mapping[str, Any], record_to_sample: Callable[[Mapping[str, Any]], Sample | None]
) -> Sample | None:
    try:
        return record_to_sample(values)
    except KeyError as error:
        raise ValueError(f"it has no column {error.args[0]}") from None
    except (IndexError, TypeError) as error:
        raise ValueError(f"one of its columns is not what it should be ({error})") from None


def _task(sample: Sample, grader: GraderSettings, name: str, others: Mapping[str, Task]) -> Task:
    """The task of a sample.

    Raises:
        ValueError: it cannot be used, in half a sentence.
    """
    if not sample.text.strip():
        raise ValueError("the question is empty")
    task = Task(
        f"{name}/{sample.id}",
        Question(text=sample.text),
        sample.gold,
        grader.for_question(sample.text),
        sample.facts,
        key=question_key(sample.content or strip_prompt(sample.text)),
    )
    if task.id in others:
        same = others[task.id].key == task.key
        raise ValueError("the same question came before" if same else f"the id of {task.id!r} came before")
    if problem := grader.gold_problem(task.gold):
        raise ValueError(problem)
    return task
