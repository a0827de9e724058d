"""What all task sets share: settings, as a TOML file may give them, that read the tasks of a split.

Rows become tasks in one place, `read_tasks`, so that for every set a row that cannot be a task is either refused by its
place in its file or counted. Splits share no question: a question stands in the latest of its splits alone (test, then
validation, then train), so what is measured is never trained on. Where a source has train and no validation, a tenth of
train becomes validation, by a hash of the question.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, Self

from pydantic import Field

from podium.config import Settings
from podium.errors import ConfigError
from podium.rows import Row
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.judge import Judge
from podium.tasks.overlap import question_key
from podium.tasks.sets.prompts import strip_prompt
from podium.tasks.task import Task
from podium.types import Question

BadRow = Literal["refuse", "skip"]
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|(?<= )\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Sample:
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

    key: str = ""
    """What is asked, without the prompt around it and folded (`overlap.question_key`): by it questions are compared."""


@dataclass(frozen=True, slots=True)
class LoadedSplit:
    """Tasks of a split."""

    tasks: tuple[Task, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows that are no tasks, by the reason."""


class TaskSetSpec(Settings):
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
    def read(self, split: str) -> LoadedSplit:
        """All tasks of one of its splits, in the order of the source.

        Raises:
            ConfigError: files that are not there, with what to fetch; or a row that is refused.
        """

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        """Several of its splits. A set that reads one for the sake of another does so once."""
        return {split: self.read(split) for split in splits}

    def with_base_dir(self, folder: Path) -> Self:
        """The same set, its paths seen from a folder."""
        return self


def read_tasks(
    rows: Iterable[Row],
    record_to_sample: Callable[[Mapping[str, Any]], Sample | None],
    grader: GraderSettings,
    *,
    name: str,
    on_bad_row: BadRow = "refuse",
) -> LoadedSplit:
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
            said = _said(row, record_to_sample)
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
    return LoadedSplit(tuple(tasks.values()), dict(skipped))


def task_key(task: Task) -> str:
    """What a task asks, as questions are compared."""
    return task.key if isinstance(task, RowTask) else question_key(strip_prompt(task.question.text))


def _said(row: Row, record_to_sample: Callable[[Mapping[str, Any]], Sample | None]) -> Sample | None:
    """What a row says; ValueError: half a sentence on why it says nothing."""
    if row.complaint:
        raise ValueError(row.complaint)
    try:
        return record_to_sample(row.values)
    except KeyError as error:
        raise ValueError(f"it has no column {error.args[0]}") from None
    except (IndexError, TypeError) as error:
        raise ValueError(f"one of its columns is not what it should be ({error})") from None


def _task(said: Sample, grader: GraderSettings, name: str) -> RowTask:
    return RowTask(
        f"{name}/{said.id}",
        Question(text=said.text),
        said.gold,
        grader.for_question(said.text) if isinstance(grader, Judge) else grader,
        said.facts,
        key=question_key(said.content or strip_prompt(said.text)),
    )


def _check(task: RowTask, grader: GraderSettings, before: RowTask | None) -> None:
    """ValueError: half a sentence on why a row is no task; `before` is a task that has its id already."""
    if not task.question.text.strip():
        raise ValueError("the question is empty")
    if before is not None:
        same = before.key == task.key
        raise ValueError("the same question came before" if same else f"the id of {task.id!r} came before")
    if problem := grader.gold_problem(task.gold):
        raise ValueError(problem)


SPLIT_ORDER = ("train", "validation", "test")
IN_LATER_SPLIT = "questions that stand in a later split too"
_VALIDATION = 0.1


def available_splits(sources: Collection[str]) -> tuple[str, ...]:
    """The splits of a set whose source has these."""
    return tuple(
        split for split in SPLIT_ORDER if split in sources or (split == "validation" and "train" in sources)
    )


def later_splits(split: str) -> tuple[str, ...]:
    """The splits whose questions this one may not have."""
    return SPLIT_ORDER[SPLIT_ORDER.index(split) + 1 :] if split in SPLIT_ORDER else ()


def read_disjoint(
    sources: Collection[str], splits: Collection[str], read: Callable[[str], LoadedSplit]
) -> dict[str, LoadedSplit]:
    """Splits of a set.

    Args:
        sources: the splits that the source has.
        splits: those that are wanted.
        read: reads one that the source has; each is read at most once.

    Raises:
        ConfigError: the set has no such split.
    """
    unknown = [split for split in splits if split not in available_splits(sources)]
    if unknown:
        raise ConfigError(
            f"There is no split {unknown[0]!r}; there is {', '.join(available_splits(sources))}."
        )
    origin = {split: split if split in sources else "train" for split in splits}
    first = min((SPLIT_ORDER.index(source) for source in origin.values()), default=len(SPLIT_ORDER))
    raw = {split: read(split) for split in SPLIT_ORDER[first:] if split in sources}
    return {split: _held_apart(split, origin[split], raw, sources) for split in splits}


def exclude(reading: LoadedSplit, taken: Collection[str], reason: str) -> LoadedSplit:
    """A reading without the tasks whose question, folded, or whose id is taken; they are counted for the reason."""
    kept = tuple(task for task in reading.tasks if task_key(task) not in taken and task.id not in taken)
    dropped = len(reading.tasks) - len(kept)
    if not dropped:
        return reading
    return LoadedSplit(kept, {**reading.skipped, reason: reading.skipped.get(reason, 0) + dropped})


def _held_apart(
    split: str, source: str, raw: dict[str, LoadedSplit], sources: Collection[str]
) -> LoadedSplit:
    later = {task_key(task) for other in later_splits(source) if other in raw for task in raw[other].tasks}
    reading = exclude(raw[source], later, IN_LATER_SPLIT)
    if source == "train" and "validation" not in sources:
        wanted = split == "validation"
        kept = tuple(task for task in reading.tasks if _held_out(task_key(task)) == wanted)
        return LoadedSplit(kept, reading.skipped)
    return reading


def _held_out(text: str) -> bool:
    return Random(f"validation/{text}").random() < _VALIDATION


def text_column(values: Mapping[str, Any], column: str) -> str:
    """A text that is not empty.

    Raises:
        KeyError: there is no such column.
        ValueError: it holds none.
    """
    value = values[column]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"its {column} holds no text")
    return value


def list_column(values: Mapping[str, Any], column: str) -> list[str]:
    """A list of texts, of which some or all may be missing; raises as `text_column`."""
    value = values[column]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"its {column} holds no list of texts")
    return value


def int_column(values: Mapping[str, Any], column: str) -> int:
    """A whole number; raises as `text_column`."""
    value = values[column]
    if not isinstance(value, int):
        raise ValueError(f"its {column} holds no whole number")
    return value
