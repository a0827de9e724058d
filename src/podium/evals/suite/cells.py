"""What a suite consists of: tables of rows, and a cell for each row and seed, whose answers have a file of their own.

A `Job` is what one process does at a time: a planner with its controls, on one table's questions, with one seed. It is
JSON, so it can be sent to another process or machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from podium.evals.fingerprints import digest
from podium.evals.suite.settings import PlannerEntry, PoolEntry, SuiteSettings, TasksEntry
from podium.ratings.answers import Answers
from podium.types import Value

_SHARED = ("repeats", "max_steps", "early_stop", "budget")
"""Settings of the suite on which a single answer depends."""
_ON_ANSWERS = {"draw", "decline", "keys"}
"""Settings of a pool, beside its name, on which a single answer depends."""
_UNKEYED = {"label", "controls"}
"""Settings of a planner that stand in no key."""
TRAINING = "train"
"""The split on which planners and controls make their choices."""


class Table(Value):
    """A task set and a pool, whose rows are compared with each other."""

    tasks: TasksEntry
    pool: PoolEntry
    split: str
    questions: int

    @property
    def label(self) -> str:
        """The heading of the table."""
        return f"{Path(self.tasks.name).stem}/{self.split}, pool {self.pool.title}"

    @property
    def training(self) -> Table:
        """The same with the questions on which choices are made. No worker turns bad during these."""
        pool = self.pool.model_copy(update={"decline": None})
        return self.model_copy(update={"split": TRAINING, "pool": pool})


class Cell(Value):
    """A row of a table with one seed."""

    table: Table
    entry: PlannerEntry
    control: str | None
    """None: the planner itself."""
    seed: int
    key: str
    """Name of the file with its answers. It contains a digest of all settings on which they depend."""

    @property
    def label(self) -> str:
        """The label of its row."""
        return self.entry.row if self.control is None else f"{self.entry.row}: {self.control}"


class TrainingResults(Value):
    """What each worker alone scored and cost on training questions."""

    workers: tuple[str, ...]
    texts: tuple[str, ...]
    score_QW: tuple[tuple[float, ...], ...]
    cost_QW: tuple[tuple[float, ...], ...]
    answer_QW: tuple[tuple[int, ...], ...]
    """Equal answers to a question have equal numbers; -1: the response has no answer."""

    @property
    def answers(self) -> Answers:
        """As arrays, from which votes are chosen."""
        score_QW = np.array(self.score_QW)
        return Answers(
            workers=self.workers,
            answer_QWR=np.array(self.answer_QW)[:, :, None],
            alone_QWR=score_QW[:, :, None],
            voted_QWR=score_QW[:, :, None],
            score_QW=score_QW,
            cost_QW=np.array(self.cost_QW),
            samples=1,
            texts=self.texts,
        )


class Job(Value):
    """A planner and its controls on the questions of one table and seed."""

    settings: SuiteSettings
    cells: tuple[Cell, ...]
    """The planner's own first; all have its table and seed."""
    kept: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The lines of answers of each cell that an earlier start of the run wrote."""
    training: TrainingResults | None = None
    """None: neither the planner nor its controls choose anything."""

    def to_json(self) -> str:
        """The text from which another process reads it again. Settings that tell what is set from what is left out
        are validated there once more, so only what is set is written."""
        return self.model_dump_json(exclude_unset=True)


def tables_of(settings: SuiteSettings) -> Iterator[Table]:
    """The tables, in the order of the file."""
    for tasks in settings.tasks:
        for pool in settings.pool:
            if not tasks.pools or pool.name in tasks.pools:
                yield Table(
                    tasks=tasks,
                    pool=pool,
                    split=settings.split_of(tasks),
                    questions=tasks.questions or settings.questions,
                )


def cells_of(
    settings: SuiteSettings,
    table: Table,
    entry: PlannerEntry,
    controls: Sequence[str],
    seed: int,
    *,
    files: Sequence[Any],
) -> tuple[Cell, ...]:
    """The cells of a planner and of its controls.

    Args:
        files: the fingerprints of all files on which their answers depend.
    """
    return tuple(
        Cell(
            table=table,
            entry=entry,
            control=control,
            seed=seed,
            key=_key(settings, table, entry, control, seed, files=files),
        )
        for control in (None, *controls)
    )


def _key(
    settings: SuiteSettings,
    table: Table,
    entry: PlannerEntry,
    control: str | None,
    seed: int,
    *,
    files: Sequence[Any],
) -> str:
    shared = {key: value for key, value in settings.model_dump(mode="json").items() if key in _SHARED}
    described = {
        "settings": shared,
        "training": settings.training,
        "tasks": [table.tasks.name, table.split, table.questions],
        "pool": table.pool.name,
        "planner": entry.model_dump(mode="json", exclude=_UNKEYED),
        "control": control,
        "seed": seed,
        **table.pool.model_dump(mode="json", include=_ON_ANSWERS, exclude_none=True),
        "files": files,
    }
    unlabelled = entry.model_copy(update={"label": ""})
    name = "-".join(filter(None, (unlabelled.row, control, f"seed {seed}")))
    written = "".join(c if c.isalnum() or c in "-." else "_" for c in name)[:80]
    return f"{written}-{digest(described)}"
