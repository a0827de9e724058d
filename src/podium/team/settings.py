"""`TeamSettings`: all settings of a team, as team.toml has them.

Every command, the server, the library, Inspect's model, suites and teams that are workers read this class. `team_file`
reads it from files and overrides; `opened_planner` and `team` open what it names.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from podium.conductor.settings import ConductorSettings
from podium.config import Settings, SettingsSource
from podium.errors import ConfigError
from podium.files.locations import default_store, default_store_path
from podium.plugins import shipped_pool
from podium.types import Budget, Limits, MessageLayout, Price
from podium.workers.build import spec_union
from podium.workers.pool import PoolSpec
from podium.workers.spec import LocalSpec, WorkerSpec


class PlannerChoice(Settings):
    """Which planner plans, and how. The table [conductor] says which model the Conductor is."""

    planner: str = "conductor"
    """conductor; or conductor:WORKER, a worker of the team that conducts untrained; or a baseline: single:WORKER,
    self-consistency:WORKER:SAMPLES, constant:FILE, random."""
    cost_sensitivity: float | None = None
    """How much plans should save, for a Conductor trained with levels: 0 saves nothing, 2.5 is between two levels."""
    quarantine_failing: bool = False
    """Whether plans avoid a worker for a while when outcomes say that the worker has begun to fail. The outcomes come
    from the callers of a server, or from the grader of an evaluation."""

    @property
    def conducting_worker(self) -> str | None:
        """The worker that conducts untrained, if `planner` names one."""
        kind, colon, worker = self.planner.partition(":")
        return worker if colon and kind == "conductor" else None

    @property
    def uses_conductor(self) -> bool:
        """Whether a Conductor plans."""
        return self.planner.partition(":")[0] == "conductor"

    @model_validator(mode="after")
    def _refuse_conflicts(self) -> Self:
        if not self.uses_conductor:
            for key in ("cost_sensitivity", "quarantine_failing"):
                if getattr(self, key) not in (None, False):
                    raise ValueError(
                        f"{key} is for a Conductor, and {self.planner} plans without; leave it out."
                    )
        elif self.cost_sensitivity is not None and self.conducting_worker is not None:
            raise ValueError("cost_sensitivity is for a trained Conductor; leave it out.")
        return self


class PlanSettings(PlannerChoice):
    """The table [plan]."""

    max_steps: int | None = Field(default=None, ge=1)
    """The most steps of a plan. Default: as many as its Conductor was trained with, else 5."""
    early_stop: bool = False
    """Whether a vote calls the cheapest workers first, and stops once its result is certain."""
    layout: MessageLayout = "packed"
    """How a worker sees earlier work: as fenced blocks in one message, or as exchanges of a chat."""
    overlap: bool = True
    """Whether the first steps run while an untrained Conductor, held to a JSON schema, still writes the others. A step
    that turns out to be unneeded is cancelled, and what it took so far is paid."""


class TeamBudget(Budget):
    """The table [budget]: hard limits of a question, of a run and of a day."""

    model_config = ConfigDict(allow_inf_nan=False)

    run_usd: float | None = Field(default=None, ge=0)
    """The most dollars of a run, over all its starts. For a server, until it ends."""
    day_usd: float | None = Field(default=None, ge=0)
    """The most dollars that all commands of a day (UTC) may cost together. Default: $PODIUM_DAY_BUDGET_USD."""

    @property
    def given_rounds(self) -> int | None:
        """The rounds that the settings name. None if they name none: then the Conductor's own number holds."""
        return self.rounds if "rounds" in self.model_fields_set else None

    def question_budget(self, rounds: int) -> Budget:
        """The limits of one question, with so many rounds if the settings name none."""
        limits = {key: getattr(self, key) for key in Budget.model_fields}
        return Budget(**{**limits, "rounds": self.given_rounds or rounds})


def _check_origin(text: str) -> str:
    origin = text.strip().rstrip("/")
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#\s@]+", origin):
        raise ValueError(f"{text!r} is no origin; write one, as https://chat.example.com.")
    return origin.lower()


class ServeSettings(Settings):
    """The table [serve]: how the server listens and answers."""

    host: str = "127.0.0.1"
    """The address to listen on. Any other than this machine's own (127.0.0.1, ::1, localhost) needs keys."""
    port: int = Field(default=8080, ge=0, le=65535)
    """The port to listen on; 0 takes a free one."""
    processes: int = Field(default=1, ge=1)
    """How many processes answer requests. They divide the limits of the team's workers among themselves, and share all
    budgets and keys."""
    runs: Path = Path("runs")
    """The folder of the run folders that the viewer shows."""
    cors: tuple[Annotated[str, AfterValidator(_check_origin)], ...] = ()
    """Origins whose web pages may call the API from a browser, as https://chat.example.com."""
    max_body_mib: float = Field(default=20.0, gt=0)
    """The largest body of a request in MiB, images included."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds after which a question is cancelled, and its request gets an error."""
    drain: float = Field(default=30.0, ge=0)
    """Seconds that running questions have to end at shutdown. Then they are cancelled and recorded as cancelled."""
    prompt_cache_minutes: float = Field(default=5.0, ge=0)
    """How long providers keep a conversation in their prompt caches. During that time the next turn stays with the
    conversation's worker if another worker would cost more and gain nothing. This needs a price of cached input. 0
    turns it off."""
    viewer: bool = True
    """Whether the viewer is served at `/`."""
    body_seconds: float = Field(default=30.0, gt=0)
    """Seconds within which a request's body must arrive."""

    @property
    def body_bytes(self) -> int:
        """The most bytes of a request body."""
        return int(self.max_body_mib * 2**20) or 1


class EvalSettings(Settings):
    """The table [eval]: what `podium eval` measures on."""

    tasks: str | None = None
    """The task set, a task file (NAME.toml), a table (NAME.csv, NAME.jsonl) or a recording (NAME.parquet). Default: the
    task set of the run."""
    split: str = "test"
    """The split to compare on. Planners make their choices on another split."""
    questions: int = Field(default=400, ge=1)
    """How many questions to compare on."""
    tuning: int | None = Field(default=None, ge=0)
    """How many questions planners make their choices on."""
    repeats: int = Field(default=1, ge=1)
    """Answers to each question."""
    concurrency: int = Field(default=16, ge=1)
    """The most questions at once."""


class SharedTeamSettings(Settings):
    """The tables of a team, both in a file and as a worker of another team."""

    pool: str | None = None
    """The team file, or the name of a shipped or installed team, whose workers are used. Keys that are left out of
    [conductor] and [plan] are taken from there too. Default: the workers of this file."""
    conductor: ConductorSettings = ConductorSettings()
    plan: PlanSettings = PlanSettings()


class TeamWorkerSpec(WorkerSpec, SharedTeamSettings):
    """A team as a worker of another team."""

    kind: Literal["podium"]
    pool: str = Field(min_length=1)
    """The team's workers: the name of a shipped team, or a file, relative to the folder of the file that names it."""
    limits: Limits = Limits(retries=0)
    """`timeout` and `max_usd` are the team's own budget for a question."""
    budget: Budget = Budget()
    """Further limits of each question."""
    cache: bool = False
    """Whether a response cache may keep the team's answers, so that the same messages get the same answer."""

    @property
    def path_keys(self) -> frozenset[str]:
        return frozenset({"pool"}) if shipped_pool(self.pool) is None else frozenset()

    @field_validator("price")
    @classmethod
    def _refuse_price(cls, price: Price) -> Price:
        if price != Price():
            raise ValueError("a team costs what its workers cost; leave its price out.")
        return price


_SPECS = spec_union({"podium": TeamWorkerSpec, "local": LocalSpec})


class TeamSettings(PoolSpec, SharedTeamSettings):
    """All of team.toml. Its paths are relative to its folder."""

    worker: tuple[Annotated[WorkerSpec, _SPECS], ...] = ()
    store: str | Literal[False] | None = None
    """The store of traces: an SQLite file, or for a server postgresql://USER@HOST/DATABASE. false: traces are not kept.
    Default: $PODIUM_STORE, else ~/.local/share/podium/traces.sqlite."""
    cache: Path | None = None
    """The SQLite file of the response cache. Default: none, but RUN/responses.sqlite for a run with paid workers."""
    replay: bool = False
    """Answer from the response cache alone: call no worker, and fail if the cache lacks an answer."""
    budget: TeamBudget = TeamBudget()
    serve: ServeSettings = ServeSettings()
    eval: EvalSettings = EvalSettings()

    _source: SettingsSource | None = PrivateAttr(default=None)

    @field_validator("store", "cache", mode="before")
    @classmethod
    def _expand_home(cls, path: Any) -> Any:
        """The path, in which "~" is the user's home: a shell leaves it in --store=~/FILE."""
        return os.path.expanduser(path) if isinstance(path, str) else path

    def model_post_init(self, context: Any, /) -> None:
        """Keep the source. Where settings are read from a file, the source is the context of validation."""
        if isinstance(context, SettingsSource):
            self._source = context

    @property
    def source(self) -> SettingsSource | None:
        """Where the settings were read. None if they were made in a program."""
        return self._source

    @property
    def workers_file(self) -> str:
        """The file that has the workers, or the name of a shipped or installed team."""
        return self.pool or ("" if self.source is None else self.source.name)

    @property
    def store_address(self) -> str | None:
        """The file or database that keeps traces. None if traces are not kept."""
        return None if self.store is False else self.store or default_store()

    @property
    def trace_store(self) -> str | None:
        """The file that keeps traces. None if traces are not kept. A default that is a database is a `UsageError`."""
        if self.store is False:
            return None
        return str(default_store_path()) if self.store is None else self.store

    def error_at(self, message: object, *where: str | int) -> ConfigError:
        """An error about the value at `where`, with its line or override if the settings were read from a source."""
        return (
            ConfigError(str(message), where) if self.source is None else self.source.error_at(message, *where)
        )

    def with_planner(
        self, choice: PlannerChoice, conductor: ConductorSettings | None = None, **limits: Any
    ) -> Self:
        """The settings of this team with another planner, its Conductor (default: the team's own), and other keys of
        [plan], such as `max_steps`."""
        chosen = {key: getattr(choice, key) for key in PlannerChoice.model_fields}
        update: dict[str, Any] = {"plan": self.plan.model_copy(update=chosen | limits)}
        if conductor is not None:
            update["conductor"] = conductor
        return self.model_copy(update=update)
