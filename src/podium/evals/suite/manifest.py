"""The manifest of a suite: tables of rows, and for each seed of a row a file of answers.

The manifest is in the run's folder, so a report needs neither the suite's file nor the files that this names. A
`SuiteJob` is the work of one process at a time, as JSON that can be sent to the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

from pydantic import Field

from podium.evals.answer_files import answers_key
from podium.evals.comparison import PlannerKind
from podium.evals.fingerprints import digest
from podium.evals.json_file import JsonFile
from podium.evals.look_log import Look, LookLog
from podium.evals.plan_selection import PLANNER_SELECTIONS
from podium.evals.suite.plan_controls import CHOSEN_CONTROLS, PLAN_CONTROLS
from podium.evals.suite.suite_settings import PlannerEntry, PoolEntry, SuiteSettings, TasksEntry
from podium.types import FrozenModel

SUITE = "suite.json"
TRAINING = "train"
"""The split on which planners and controls make their choices."""
_SHARED = {"repeats", "max_steps", "early_stop", "budget"}
"""Settings of the suite on which a single answer depends."""
_ON_ANSWERS = {"draw", "degradation", "keys"}
"""Settings of a pool, besides its name, on which a single answer depends."""
_UNKEYED = {"label", "controls", "pool", "tasks", "seeds"}
"""Settings of a planner that are not in a key, or that are in a key as settings of the table."""


class TableSettings(FrozenModel):
    """A task set and a pool, whose rows are compared with each other."""

    tasks: TasksEntry
    pool: PoolEntry
    split: str
    questions: int

    @property
    def label(self) -> str:
        return f"{Path(self.tasks.name).stem}/{self.split}, pool {self.pool.title}"

    def for_training(self, questions: int) -> TableSettings:
        """The settings with so many training questions, on which choices are made. No worker turns bad during these."""
        pool = self.pool.model_copy(update={"degradation": None})
        return self.model_copy(update={"split": TRAINING, "pool": pool, "questions": questions})

    def with_pool_of(self, entry: PlannerEntry) -> TableSettings:
        return self if entry.pool is None else self.model_copy(update={"pool": entry.pool})

    def key(
        self,
        settings: SuiteSettings,
        entry: PlannerEntry,
        control: str | None,
        seed: int,
        files: Sequence[Any],
    ) -> str:
        """The name of a file of answers, with a digest of all settings on which the answers depend.

        Args:
            entry: the planner of this seed.
            files: the fingerprints of all files on which the answers depend.
        """
        drawn_by = () if self.tasks.seed is None else (self.tasks.seed,)
        described = {
            "settings": settings.model_dump(mode="json", include=_SHARED),
            "training": settings.training,
            "tasks": [self.tasks.name, self.split, self.questions, *drawn_by],
            "pool": self.pool.name,
            "planner": entry.model_dump(mode="json", exclude=_UNKEYED),
            "control": control,
            "seed": seed,
            **self.pool.model_dump(mode="json", include=_ON_ANSWERS, exclude_none=True),
            "files": files,
        }
        unlabelled = entry.model_copy(update={"label": ""})
        name = "-".join(filter(None, (unlabelled.row, control, f"seed {seed}")))
        return answers_key(name, described)


def tables_of(settings: SuiteSettings) -> Iterator[TableSettings]:
    """The tables, in the order of the file."""
    for tasks in settings.tasks:
        for pool in settings.pool:
            if not tasks.pools or pool.name in tasks.pools:
                yield TableSettings(
                    tasks=tasks,
                    pool=pool,
                    split=settings.split_of(tasks),
                    questions=tasks.questions or settings.questions,
                )


class SeedAnswersFile(FrozenModel):
    """The file of a row's answers with one seed."""

    key: str
    seed: int
    answers: int
    """How many answers the complete file has."""


class SuiteRow(FrozenModel):
    """A planner, or one of its controls, with all seeds."""

    entry: PlannerEntry
    control: str | None = None
    """The control that changes the planner. None for the planner itself."""
    files: tuple[SeedAnswersFile, ...]

    @property
    def label(self) -> str:
        return self.entry.row if self.control is None else f"{self.entry.row}: {self.control}"

    @property
    def kind(self) -> PlannerKind:
        if self.control is not None:
            return "control"
        if self.entry.best_of > 1:
            return "oracle"
        if self.entry.planner in PLANNER_SELECTIONS:
            return PLANNER_SELECTIONS[self.entry.planner].kind
        name = self.entry.planner.partition(":")[0]
        kinds: tuple[PlannerKind, ...] = get_args(PlannerKind)
        return next((kind for kind in kinds if kind == name), "other")

    @property
    def rules_out(self) -> str:
        """What explains the planner's accuracy if this control is as accurate. Empty if the row is no control."""
        return "" if self.control is None else PLAN_CONTROLS[self.control].rules_out

    @property
    def by_seed(self) -> bool:
        """Whether each seed has a checkpoint of its own."""
        seeds = {self.entry.with_seed(file.seed).checkpoint for file in self.files}
        return self.control is None and len(seeds) > 1

    @property
    def is_chosen(self) -> bool:
        """Whether the planner is chosen on training questions, so that its name says more than the label."""
        return self.control in CHOSEN_CONTROLS or self.entry.planner in PLANNER_SELECTIONS


class SuiteTable(FrozenModel):
    """A table with its rows: each planner, followed by its controls."""

    settings: TableSettings
    looks_file: str | None
    """The file in which looks at the split are counted. None for train, whose looks are not counted."""
    notes: tuple[str, ...] = ()
    """Which questions are left out."""
    conditioned: bool = False
    """Whether workers replay responses that were recorded together with earlier answers."""
    pays: bool = False
    paid_workers: bool = False
    """Whether workers cost money. Then answers are repeated from a response cache."""
    rows: tuple[SuiteRow, ...]
    training: tuple[SuiteRow, ...] = ()
    """The rows of each worker alone on the training questions, for each pool over which a planner learns."""

    @property
    def label(self) -> str:
        return self.settings.label

    @property
    def config(self) -> str:
        """Digest of all settings on which the figures depend."""
        return digest(sorted(file.key for row in self.rows for file in row.files))

    @property
    def look_log(self) -> LookLog | None:
        return None if self.looks_file is None else LookLog(Path(self.looks_file))

    def count_look(self, note: str) -> None:
        """Count an evaluation of these rows in the log of looks, if the split has one.

        Raises:
            StoreError: the log cannot be written.
        """
        if self.look_log is not None:
            look = Look(
                tasks=self.settings.tasks.name,
                split=self.settings.split,
                config=self.config,
                planners=tuple(row.label for row in self.rows),
                note=note.strip(),
            )
            self.look_log.add(look)


class SuiteManifest(JsonFile):
    """All tables of a suite."""

    description: ClassVar[str] = "the manifest of a suite"
    exclude_unset: ClassVar[bool] = True

    settings: SuiteSettings
    tables: tuple[SuiteTable, ...]

    @property
    def pays(self) -> bool:
        return any(table.pays for table in self.tables)

    @property
    def paid_workers(self) -> bool:
        return any(table.paid_workers for table in self.tables)

    @property
    def answers(self) -> dict[str, int]:
        """How many answers each complete file has, by its key."""
        rows = (row for table in self.tables for row in (*table.rows, *table.training))
        return {file.key: file.answers for row in rows for file in row.files}

    @property
    def jobs(self) -> list[SuiteJob]:
        return [job for table in self.tables for job in _jobs(self.settings, table)]

    @property
    def training_jobs(self) -> list[SuiteJob]:
        """The jobs of workers alone on training questions, each once. Tables that differ only during the test share
        them."""
        once = self.settings.model_copy(update={"repeats": 1})
        jobs = (job for table in self.tables for job in _jobs(once, table, training=True))
        return list({job.keys: job for job in jobs}.values())


class SuiteJob(FrozenModel):
    """A planner and its controls on the questions of one table and seed."""

    settings: SuiteSettings
    table: TableSettings
    entry: PlannerEntry
    seed: int
    key: str
    """The key of the planner's file of answers."""
    control_keys: dict[str, str] = Field(default_factory=dict)
    """For each control, by name, the key of its file of answers."""
    training: dict[str, str] = Field(default_factory=dict)
    """For each worker, by name, the key of its answers to training questions. Empty if no planner learns on this
    table."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all files of answers, the planner's first."""
        return (self.key, *self.control_keys.values())

    @property
    def worker(self) -> str | None:
        """The worker that answers alone. None for another planner."""
        kind, _, name = self.entry.planner.partition(":")
        return name if kind == "single" else None

    def to_json(self) -> str:
        """The job as JSON, for another process. As in the manifest, only fields that are set are written."""
        return self.model_dump_json(exclude_unset=True)


def _jobs(settings: SuiteSettings, table: SuiteTable, *, training: bool = False) -> Iterator[SuiteJob]:
    rows = table.training if training else table.rows
    for row in rows:
        if row.control is not None:
            continue
        controls = {other.control: other for other in rows if other.control and other.entry == row.entry}
        singles = (each for each in table.training if each.entry.pool == row.entry.pool)
        answers_of = {single.entry.planner.partition(":")[2]: single.files[0].key for single in singles}
        row_table = table.settings.with_pool_of(row.entry)
        for index, file in enumerate(row.files):
            yield SuiteJob(
                settings=settings,
                table=row_table.for_training(settings.training) if training else row_table,
                entry=row.entry.with_seed(file.seed),
                seed=file.seed,
                key=file.key,
                control_keys={name: control.files[index].key for name, control in controls.items()},
                training={} if training else answers_of,
            )
