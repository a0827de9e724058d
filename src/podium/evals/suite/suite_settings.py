"""The settings of a suite: which planners are evaluated on which task sets, over which pools, with which seeds.

`podium eval FILE.toml` reads them. Nothing here opens what they name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from podium.conductor.settings import ConductorSettings
from podium.config import Settings
from podium.errors import ConfigError
from podium.evals.suite.plan_controls import find_control
from podium.rollout.random_pools import PoolSampling
from podium.team.settings import PlannerSettings
from podium.types import Budget

EACH_WORKER = "single:*"
"""The planner that stands for a row of each worker alone."""
_SEED = "{seed}"
"""In the path of a checkpoint it stands for the number of the suite's seed."""


class WorkerDegradation(Settings):
    """A worker that turns bad during the test, and does not say so."""

    worker: str
    at: int = Field(ge=0)
    """The first question, counted from 0, that meets the worker so."""
    gives: str = ""
    """The worker of the pool whose answers it gives from then on. Empty: all its calls fail."""


class PoolEntry(Settings):
    """A pool of workers."""

    name: str
    """A team file, or a shipped team's name."""
    keys: tuple[str, ...] | None = None
    """Keys of this file that are set otherwise, such as "worker.large.limits.timeout=60"."""
    draw: PoolSampling | None = None
    """How the pool of each question is drawn from these workers, as in training. Default: all of them, in their
    order."""
    degradation: WorkerDegradation | None = None
    """A worker that turns bad. Without it, all stay as they are."""
    label: str = ""
    """What tables call it. Default: its name; two pools of the same workers need labels."""

    @property
    def title(self) -> str:
        """What tables call it. A file that is called pool.toml has the name of its folder."""
        file = Path(self.name)
        in_folder = file.stem == "pool" and file.parent != Path()
        return self.label or (file.resolve().parent.name if in_folder else file.stem)

    @model_validator(mode="after")
    def _offers_it(self) -> Self:
        if self.degradation is not None and self.draw is not None:
            raise ValueError("a pool with degradation offers all its workers; leave draw out")
        return self


class PlannerEntry(PlannerSettings):
    """A planner, with its controls. `single:*` is a row for each worker alone.

    "{seed}" in `conductor.checkpoint` and `untrained` stands for the number of the seed. So the seeds of a training are
    one row, in which each policy answers the questions of its own seed.
    """

    conductor: ConductorSettings | None = None
    """Which Conductor plans. Default: the pool's."""
    label: str = ""
    """Its row's label. Default: its name; for a Conductor also the checkpoint."""
    controls: tuple[str, ...] | Literal["all"] = ()
    """Controls of this planner, each with a row of its own; "all": all that can be run here."""
    best_of: int = Field(default=1, ge=1)
    """More than 1: a bound, no method. For each question the Conductor samples so many plans at temperature 1, all are
    run and graded, and the best one counts: a right one before a wrong one, then the cheaper one."""
    rounds: int | None = Field(default=None, ge=1)
    """The most plans for a question in this row. Default: as many as the suite's budget allows, the Conductor was
    trained with, or the method needs, whichever is most."""
    untrained: str | None = None
    """The checkpoint before training, for the control "untrained"."""
    pool: PoolEntry | None = None
    """The workers of this row and its controls, if they are others than its table's. The questions are the same,
    so the row is compared with the others."""
    tasks: tuple[str, ...] = ()
    """The task sets, by name, on which it is evaluated. If empty, on all."""
    seeds: int | None = Field(default=None, ge=1)
    """It is evaluated with so many of the suite's first seeds; by default, with all. For a row that no training made,
    where each seed has the same questions."""

    @field_validator("controls")
    @classmethod
    def _known(cls, controls: tuple[str, ...] | Literal["all"]) -> tuple[str, ...] | Literal["all"]:
        for name in () if controls == "all" else controls:
            try:
                find_control(name)
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return controls

    @property
    def checkpoint(self) -> str | None:
        """The trained Conductor that it names."""
        return None if self.conductor is None else self.conductor.checkpoint

    @property
    def conducts_untrained(self) -> bool:
        """Whether it names a model that conducts without a training for it: a worker, or an endpoint."""
        table = self.conductor
        named = table is not None and (table.worker or (table.base_url and table.podium_file is None))
        return self.uses_conductor and (self.conducting_worker is not None or bool(named))

    def of_seed(self, seed: int) -> Self:
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
        """The label of its row."""
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
        """Whether it has a row in the tables of a task set."""
        return not self.tasks or tasks.name in self.tasks

    @property
    def _bound(self) -> str:
        return f", best of {self.best_of} plans (a bound)" if self.best_of > 1 else ""

    @model_validator(mode="after")
    def _can_learn(self) -> Self:
        if self.quarantine_failing and self.controls:
            raise ValueError("quarantine_failing learns from outcomes, so its row has no controls")
        return self

    @model_validator(mode="after")
    def _samples_plans(self) -> Self:
        if self.best_of > 1 and (not self.uses_conductor or self.controls):
            raise ValueError("best_of is for a planner whose plans a model writes, in a row without controls")
        return self


class TasksEntry(Settings):
    """A task set. What it leaves out, the suite says."""

    name: str
    """A task set, a task file, a table or a recording."""
    split: str | None = None
    questions: int | None = Field(default=None, ge=1)
    pools: tuple[str, ...] = ()
    """The pools, by name, with which this set is used. If empty, with all."""
    seed: int | None = None
    """Draws the questions, the same for each seed of the suite. Without it, each seed draws its own."""


class AnsweringSettings(Settings):
    """How the questions of a suite are answered."""

    repeats: int = Field(default=1, ge=1)
    """Answers to each question."""
    max_steps: int | None = Field(default=None, ge=1)
    """The most steps of a plan. Default: as many as a Conductor was trained with, else 5."""
    early_stop: bool = False
    """Whether votes call no further worker once they are certain."""
    budget: Budget = Field(default_factory=Budget)
    """The limits of one question. With rounds = 1, a planner whose method needs more rounds has them all the same."""
    concurrency: int = Field(default=16, ge=1)
    """The most questions at once in one process."""


class SuiteSettings(AnsweringSettings):
    """All settings of a suite. The same settings give the same results, in one process or in many."""

    title: str = ""
    """The heading of the report."""
    seed: int = 0
    """The first seed. A seed draws the questions, unless their set has one, and all else that is random."""
    seeds: int = Field(default=1, ge=1)
    """How many seeds, one after the other."""
    split: str = "test"
    """The split that planners are compared on: train, validation or test."""
    questions: int = Field(default=400, ge=1)
    """Questions of each task set for each seed."""
    training: int = Field(default=400, ge=1)
    """Training questions of each task set, on which planners that learn, and controls, make their choices."""
    processes: int | None = Field(default=None, ge=1)
    """How many processes run workers that cost no money. Default: one for each core. Paid workers run in one."""
    planner: tuple[PlannerEntry, ...] = (PlannerEntry(),)
    """The first one is compared with the others."""
    tasks: tuple[TasksEntry, ...] = ()
    pool: tuple[PoolEntry, ...] = ()

    @model_validator(mode="after")
    def _agree(self) -> SuiteSettings:
        if not (self.planner and self.tasks and self.pool):
            raise ValueError("a suite needs a [[planner]], [[tasks]] and a [[pool]] or more")
        for entry in self.tasks:
            labels = [planner.row for planner in self.planner if planner.is_evaluated_on(entry)]
            for label in labels:
                if labels.count(label) > 1:
                    raise ValueError(f"two planners have the row {label!r}; give one of them a label")
        pools = [entry.name for entry in self.pool]
        for entry in self.tasks:
            for name in entry.pools:
                if name not in pools:
                    raise ValueError(f"the tasks {entry.name} name the pool {name!r}, which no [[pool]] has")
        sets = [entry.name for entry in self.tasks]
        for planner in self.planner:
            for name in planner.tasks:
                if name not in sets:
                    raise ValueError(
                        f"the planner {planner.row} names the tasks {name!r}, which no [[tasks]] has"
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
        """The number of each seed."""
        return range(self.seed, self.seed + self.seeds)

    def split_of(self, tasks: TasksEntry) -> str:
        """The split that a task set is evaluated on."""
        return tasks.split or self.split


CHANGEABLE = frozenset(
    f"suite.{key}" for key in ("title", "seeds", "planner", "tasks", "pool", "concurrency", "processes")
)
"""Settings that may change when a run is resumed. Answers of what is no longer named are kept and not shown."""
