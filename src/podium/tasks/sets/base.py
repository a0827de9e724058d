"""What all task sets of rows are: settings, as a TOML file may say them, that read the tasks of a split.

Rows become tasks in one place, `read_tasks`: so a row that cannot be one is refused by its place in its file, or
counted, in the same way for every set.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from podium.config import Settings
from podium.errors import ConfigError
from podium.rows import Row
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.judge import Judge
from podium.tasks.overlap import fold
from podium.tasks.sets.prompts import bare
from podium.tasks.task import Task
from podium.types import Question

BadRow = Literal["refuse", "skip"]
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|(?<= )\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a row says."""

    text: str
    """The question, as workers are asked it."""
    gold: str
    id: str
    """Unique within the set."""
    facts: Mapping[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    content: str = ""
    """What is asked, without the prompt around it; empty: the text, without the prompts of our sets."""


@dataclass(frozen=True, slots=True)
class RowTask(Task):
    """A task that a row was made into."""

    folded: str = ""
    """What is asked, without the prompt around it and folded (`overlap.fold`): by it questions are compared."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Tasks of a split."""

    tasks: tuple[Task, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows that are no tasks, by the reason."""


class SetSpec(Settings):
    """Base of all sets; `set` is its name."""

    set: str
    weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Of a mixture: its share, against the weights of the other parts."""
    count: int | None = Field(default=None, ge=1)
    """Of a mixture: so many tasks of each split, at most."""

    @property
    def label(self) -> str:
        """What reports and mixtures call it."""
        return self.set

    @property
    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Of train, validation and test those that there are."""

    @abstractmethod
    def read(self, split: str) -> Reading:
        """All tasks of one of its splits, in the order of the source.

        Raises:
            ConfigError: files that are not there, with what to fetch; or a row that is refused.
        """

    def readings(self, splits: Collection[str]) -> Mapping[str, Reading]:
        """Several of its splits. A set that reads one for the sake of another does so once."""
        return {split: self.read(split) for split in splits}

    def beside(self, folder: Path) -> Self:
        """The same set, its paths seen from a folder."""
        return self


def read_tasks(
    rows: Iterable[Row],
    entry: Callable[[Mapping[str, Any]], Entry | None],
    grader: GraderSettings,
    *,
    name: str,
    on_bad_row: BadRow = "refuse",
) -> Reading:
    """Tasks of rows.

    Args:
        entry: what a row says; None: the row is not wanted, and not counted. Raises ValueError, TypeError or
            LookupError where the row is broken.
        name: of the set; task ids begin with it.

    Raises:
        ConfigError: a row that cannot be a task, by its place, where bad rows are refused.
    """
    tasks: dict[str, RowTask] = {}
    skipped: Counter[str] = Counter()
    for row in rows:
        try:
            said = _said(row, entry)
            if said is None:
                continue
            task = _task(said, grader, name)
            _check(task, grader, tasks.get(task.id))
        except ValueError as error:
            if on_bad_row == "refuse":
                raise ConfigError(
                    f'{row.place}: {error}; mend the row, or set on_bad_row = "skip".'
                ) from None
            skipped[_DETAIL.sub("…", str(error))] += 1
        else:
            tasks[task.id] = task
    return Reading(tuple(tasks.values()), dict(skipped))


def folded(task: Task) -> str:
    """What a task asks, as questions are compared."""
    return task.folded if isinstance(task, RowTask) else fold(bare(task.question.text))


def _said(row: Row, entry: Callable[[Mapping[str, Any]], Entry | None]) -> Entry | None:
    """What a row says; ValueError: half a sentence on why it says nothing."""
    if row.complaint:
        raise ValueError(row.complaint)
    try:
        return entry(row.values)
    except KeyError as error:
        raise ValueError(f"it has no column {error.args[0]}") from None
    except (IndexError, TypeError) as error:
        raise ValueError(f"one of its columns is not what it should be ({error})") from None


def _task(said: Entry, grader: GraderSettings, name: str) -> RowTask:
    return RowTask(
        f"{name}/{said.id}",
        Question(text=said.text),
        said.gold,
        grader.about(said.text) if isinstance(grader, Judge) else grader,
        said.facts,
        folded=fold(said.content or bare(said.text)),
    )


def _check(task: RowTask, grader: GraderSettings, before: RowTask | None) -> None:
    """ValueError: half a sentence on why a row is no task; `before` is a task that has its id already."""
    if not task.question.text.strip():
        raise ValueError("the question is empty")
    if before is not None:
        same = before.folded == task.folded
        raise ValueError("the same question came before" if same else f"the id of {task.id!r} came before")
    if complaint := grader.complaint(task.gold):
        raise ValueError(complaint)
