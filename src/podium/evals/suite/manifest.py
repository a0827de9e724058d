"""The manifest of a suite's run: which tables and rows it has, and which file has the answers of each.

It is written when the run begins, so a report needs neither the suite's file nor what that names.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, get_args

from podium.evals.comparison import Kind
from podium.evals.fingerprints import digest
from podium.evals.json_file import JsonFile
from podium.evals.looks import TRAIN, EvaluationLedger, ledger_file
from podium.evals.suite.cells import Cell, Table
from podium.evals.suite.open_table import CHOSEN
from podium.evals.suite.opening import Checked
from podium.evals.suite.settings import WorkerDegradation
from podium.planners.plan_controls import CHOSEN_CONTROLS, PLAN_CONTROLS
from podium.types import Value

SUITE = "suite.json"
"""Its name in a run's folder."""


class CellFile(Value):
    """The answers of a row with one seed."""

    key: str
    seed: int
    answers: int
    """How many it has when it is complete."""


class SuiteRow(Value):
    """A planner or a control."""

    label: str
    kind: Kind
    rules_out: str = ""
    of: str | None = None
    """The label of its planner's row, for a control."""
    by_seed: bool = False
    """Whether each seed has a checkpoint of its own. False for controls."""
    chosen: bool = False
    """Whether its planner is chosen on training questions, so that its name says more than the label."""
    cells: tuple[CellFile, ...]


class SuiteTable(Value):
    """A task set and a pool."""

    label: str
    tasks: str
    split: str
    pool: str
    config: str
    """Digest of all settings on which the figures depend."""
    ledger: str | None
    """The file in which looks at the split are counted; None: looks at train are not."""
    notes: tuple[str, ...] = ()
    """Which questions are left out."""
    conditioned: bool = False
    """Whether workers replay answers that were given to other answers."""
    decline: WorkerDegradation | None = None
    """A worker that turns bad during the test; None: all stay as they are."""
    rows: tuple[SuiteRow, ...]

    @property
    def looks(self) -> EvaluationLedger | None:
        """The ledger of its split."""
        return None if self.ledger is None else EvaluationLedger(Path(self.ledger))

    @property
    def planners(self) -> tuple[str, ...]:
        """The labels of its rows."""
        return tuple(row.label for row in self.rows)


class Manifest(JsonFile):
    """All tables of a suite."""

    description: ClassVar[str] = "the manifest of a suite"

    title: str = ""
    seeds: int
    repeats: int
    max_steps: int | None
    rounds: int
    tables: tuple[SuiteTable, ...]

    @classmethod
    def of(cls, checked: Checked, run: Path) -> Manifest:
        """The manifest of a suite that will run in the folder `run`."""
        settings = checked.settings
        by_table: dict[str, list[Cell]] = {}
        for cell in (cell for job in checked.jobs for cell in job.cells):
            by_table.setdefault(cell.table.label, []).append(cell)
        return cls(
            title=settings.title,
            seeds=settings.seeds,
            repeats=settings.repeats,
            max_steps=settings.max_steps,
            rounds=settings.budget.rounds,
            tables=tuple(_table(cells[0].table, cells, checked, run) for cells in by_table.values()),
        )


def _table(table: Table, cells: list[Cell], checked: Checked, run: Path) -> SuiteTable:
    ledger = None if table.split == TRAIN else ledger_file(table.tasks.name, run)
    rows: dict[str, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.label, []).append(cell)
    return SuiteTable(
        label=table.label,
        tasks=table.tasks.name,
        split=table.split,
        pool=table.pool.name,
        config=digest(sorted(cell.key for cell in cells)),
        ledger=None if ledger is None else str(ledger.absolute()),
        notes=checked.notes[table.label],
        conditioned=checked.conditioned[table.label],
        decline=table.pool.decline,
        rows=tuple(_row(label, found, checked) for label, found in rows.items()),
    )


def _row(label: str, cells: list[Cell], checked: Checked) -> SuiteRow:
    first = cells[0]
    return SuiteRow(
        label=label,
        kind=_kind(first),
        rules_out="" if first.control is None else PLAN_CONTROLS[first.control].rules_out,
        of=None if first.control is None else first.entry.row,
        by_seed=first.control is None and len({cell.entry.checkpoint for cell in cells}) > 1,
        chosen=first.control in CHOSEN_CONTROLS or first.entry.planner in CHOSEN,
        cells=tuple(
            CellFile(key=cell.key, seed=cell.seed, answers=checked.answers[cell.key]) for cell in cells
        ),
    )


def _kind(cell: Cell) -> Kind:
    if cell.control is not None:
        return "control"
    if cell.entry.best_of > 1:
        return "oracle"
    if cell.entry.planner in CHOSEN:
        return "cascade" if cell.entry.planner == "best-cascade" else "committee"
    name = cell.entry.planner.partition(":")[0]
    kinds: tuple[Kind, ...] = get_args(Kind)
    return next((kind for kind in kinds if kind == name), "other")
