"""The settings of a suite: which planners are evaluated on which task sets, over which pools, with which seeds.

`podium eval FILE.toml` reads these settings. Nothing here opens the files that they name.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from podium.conductor.settings import ConductorSettings
from podium.config import Settings, suggestion
from podium.evals.suite.plan_controls import PLAN_CONTROLS
from podium.rollout.pool_sampling import PoolSampling
from podium.team.settings import PlannerChoice
from podium.types import Budget

EACH_WORKER = "single:*"
_SEED = "{seed}"
"""The text that stands for the number of the suite's seed in the path of a checkpoint."""


class WorkerDegradation(Settings):
    """A worker that turns bad during the test, and does not say so."""

    worker: str
    at: int = Field(ge=0)
    """The first question, counted from 0, for which the worker is bad."""
    gives: str = ""
    """The worker of the pool whose answers it gives from then on. If it is empty, all its calls fail."""


class PoolEntry(Settings):
    name: str
    """A team file, or a shipped team's name."""
    keys: tuple[str, ...] | None = None
    """Overrides of keys in this file, such as "worker.large.limits.timeout=60"."""
    draw: PoolSampling | None = None
    """How the pool of each question is drawn from these workers, as in training. Default: all workers in their
    order."""
    degradation: WorkerDegradation | None = None
    """A worker that turns bad during the test. Default: none does."""
    label: str = ""
    """The pool's label in tables. Default: its name. Two pools of the same workers need labels."""

    @property
    def title(self) -> str:
        """The pool's label in tables. A file that is called pool.toml has the name of its folder."""
        file = Path(self.name)
        in_folder = file.stem == "pool" and file.parent != Path()
        return self.label or (file.resolve().parent.name if in_folder else file.stem)

    @model_validator(mode="after")
    def _offers_it(self) -> Self:
        if self.degradation is not None and self.draw is not None:
            raise ValueError("a pool with degradation offers all its workers; leave draw out")
        return self


class PlannerEntry(PlannerChoice):
    """A planner, with its controls. `single:*` is a row for each worker alone.

    "{seed}" in `conductor.checkpoint` and `untrained` stands for the number of the seed. So all seeds of a training are
    one row, in which each policy answers the questions of its own seed.
    """

    conductor: ConductorSettings | None = None
    """Which Conductor plans. Default: the pool's."""
    label: str = ""
    """The row's label. Default: the planner's name, and for a Conductor also the checkpoint."""
    controls: tuple[str, ...] | Literal["all"] = ()
    """Controls of this planner, each in its own row. "all" means all controls that can be run here."""
    best_of: int = Field(default=1, ge=1)
    """If it is more than 1, the row is a bound and not a method. For each question the Conductor samples this many
    plans at temperature 1. All are run and graded, and the best counts: a right plan before a wrong plan, then the
    cheaper plan."""
    rounds: int | None = Field(default=None, ge=1)
    """The most plans for a question in this row. Default: the largest of the suite's budget, the Conductor's training
    and the method's need."""
    untrained: str | None = None
    """The checkpoint before training, for the control "untrained"."""
    pool: PoolEntry | None = None
    """The workers of this row and its controls. Default: those of the table. The questions are the same, so the row is
    compared with the others."""
    tasks: tuple[str, ...] = ()
    """The names of the task sets on which the planner is evaluated. If empty, on all."""
    seeds: int | None = Field(default=None, ge=1)
    """How many of the suite's first seeds the planner is evaluated with. Default: all. It is for a planner without
    training, if each seed has the same questions."""

    @field_validator("controls")
    @classmethod
    def _known(cls, controls: tuple[str, ...] | Literal["all"]) -> tuple[str, ...] | Literal["all"]:
        for name in () if controls == "all" else controls:
            if name not in PLAN_CONTROLS:
                raise ValueError(f"There is no control {name!r}; {suggestion(name, list(PLAN_CONTROLS))}")
        return controls

    @property
    def checkpoint(self) -> str | None:
        return None if self.conductor is None else self.conductor.checkpoint

    @property
    def conducts_untrained(self) -> bool:
        """Whether the planner is an untrained Conductor: a worker, or an endpoint."""
        table = self.conductor
        named = table is not None and (table.worker or (table.base_url and table.podium_file is None))
        return self.uses_conductor and (self.conducting_worker is not None or bool(named))

    def with_seed(self, seed: int) -> Self:
        """This planner with the checkpoints of a seed, in the same row."""
        named: dict[str, Any] = {}
        if self.untrained is not None and _SEED in self.untrained:
            named["untrained"] = self.untrained.replace(_SEED, str(seed))
        if self.conductor is not None and self.checkpoint is not None and _SEED in self.checkpoint:
            own = {"checkpoint": self.checkpoint.replace(_SEED, str(seed))}
            named["conductor"] = self.conductor.model_copy(update=own)
        return self.model_copy(update={**named, "label": self.row}) if named else self

    @property
    def row(self) -> str:
        if self.label:
            return self.label
        if self.planner == EACH_WORKER and self.pool is not None:
            return f"{EACH_WORKER} of {self.pool.title}"
        if self.planner != "conductor":
            return f"{self.planner}{self._bound}"
        table = self.conductor
        source = None if table is None else table.checkpoint or table.worker or table.model
        level = "" if self.cost_sensitivity is None else f", cost sensitivity {self.cost_sensitivity:g}"
        leaves = ", leaves who fails" if self.quarantine_failing else ""
        rounds = "" if self.rounds is None else f", {self.rounds} round{'s' * (self.rounds > 1)}"
        return f"Conductor{f' {source}' if source else ''}{level}{leaves}{rounds}{self._bound}"

    def is_evaluated_on(self, tasks: TasksEntry) -> bool:
        return not self.tasks or tasks.name in self.tasks

    @property
    def _bound(self) -> str:
        return f", best of {self.best_of} plans (a bound)" if self.best_of > 1 else ""

    @model_validator(mode="after")
    def _can_have_controls(self) -> Self:
        if self.quarantine_failing and self.controls:
            raise ValueError("quarantine_failing learns from outcomes, so its row has no controls")
        if self.best_of > 1 and (not self.uses_conductor or self.controls):
            raise ValueError("best_of is for a planner whose plans a model writes, in a row without controls")
        return self


class TasksEntry(Settings):
    """A task set. For keys that it leaves out, the suite's own settings hold."""

    name: str
    """A task set, a task file, a table or a recording."""
    split: str | None = None
    questions: int | None = Field(default=None, ge=1)
    pools: tuple[str, ...] = ()
    """The names of the pools with which this set is used. If empty, with all."""
    seed: int | None = None
    """Seeds the choice of questions, for all seeds of the suite. Default: each seed draws its own questions."""


class SuiteSettings(Settings):
    """All settings of a suite. The same settings give the same results, in one process or in many."""

    title: str = ""
    seed: int = 0
    """The first seed. A seed decides everything that is random, including the questions unless their task set has a
    seed."""
    seeds: int = Field(default=1, ge=1)
    """How many consecutive seeds there are."""
    split: str = "test"
    """The split that planners are compared on: train, validation or test."""
    questions: int = Field(default=400, ge=1)
    """Questions of each task set for each seed."""
    training: int = Field(default=400, ge=1)
    """Training questions of each task set, on which planners and controls make their choices."""
    repeats: int = Field(default=1, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    """The most steps of a plan. Default: as many as a Conductor was trained with, else 5."""
    early_stop: bool = False
    """Whether a vote calls no more workers once its result is certain."""
    budget: Budget = Field(default_factory=Budget)
    """The limits of one question. Even with rounds = 1, a planner has as many rounds as its method needs."""
    concurrency: int = Field(default=16, ge=1)
    """The most questions at once in one process."""
    processes: int | None = Field(default=None, ge=1)
    """How many processes run workers that cost no money. Default: one for each core. Paid workers run in one."""
    planner: tuple[PlannerEntry, ...] = (PlannerEntry(),)
    """The planners. The first is compared with the others."""
    tasks: tuple[TasksEntry, ...] = ()
    pool: tuple[PoolEntry, ...] = ()

    @model_validator(mode="after")
    def _agree(self) -> SuiteSettings:
        if not (self.planner and self.tasks and self.pool):
            raise ValueError("a suite needs a [[planner]], [[tasks]] and a [[pool]] or more")
        pools, sets = [entry.name for entry in self.pool], [entry.name for entry in self.tasks]
        for entry in self.tasks:
            labels = Counter(planner.row for planner in self.planner if planner.is_evaluated_on(entry))
            for label, rows in labels.items():
                if rows > 1:
                    raise ValueError(f"two planners have the row {label!r}; give one of them a label")
            if unknown := [name for name in entry.pools if name not in pools]:
                raise ValueError(
                    f"the tasks {entry.name} name the pool {unknown[0]!r}, which no [[pool]] has"
                )
        for planner in self.planner:
            if unknown := [name for name in planner.tasks if name not in sets]:
                raise ValueError(
                    f"the planner {planner.row} names the tasks {unknown[0]!r}, which no [[tasks]] has"
                )
            own = [entry for entry in self.tasks if planner.is_evaluated_on(entry)]
            if planner.seeds is not None and any(entry.seed is None for entry in own):
                raise ValueError(
                    f"the planner {planner.row} has seeds, and each seed draws other questions; give each [[tasks]] a "
                    "seed, or leave seeds out"
                )
        return self

    @property
    def all_seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    def split_of(self, tasks: TasksEntry) -> str:
        return tasks.split or self.split


CHANGEABLE = frozenset(
    f"suite.{key}" for key in ("title", "seeds", "planner", "tasks", "pool", "concurrency", "processes")
)
"""Settings that may change when a run is resumed. Answers of planners that are no longer named are kept but not
shown."""
