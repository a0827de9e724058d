"""The options of a verb that name a team, and those of its workers' calls.

Any key of a team file can be set by `key=value` on the command line. `OPTION_KEYS` gives some keys a short option too.
`found_team` finds the file that the options name.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podium.cli.options import Flag
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.calls import CallState
    from podium.workers.pool import Pool

OPTION_KEYS: Mapping[str, str] = {
    "pool": "pool",
    "planner": "plan.planner",
    "conductor": "conductor.checkpoint",
    "max_steps": "plan.max_steps",
    "rounds": "budget.rounds",
    "budget_usd": "budget.usd",
    "run_budget_usd": "budget.run_usd",
    "day_budget_usd": "budget.day_usd",
    "store": "store",
    "cache": "cache",
    "host": "serve.host",
    "port": "serve.port",
    "drain": "serve.drain",
    "processes": "serve.processes",
    "tasks": "eval.tasks",
    "split": "eval.split",
    "questions": "eval.questions",
}
"""The key of each short option, by the name of its field."""


@dataclass(frozen=True)
class CallOptions:
    """What all calls to workers share. Verbs that read no team file have these options alone."""

    cache: Path | None = None
    """The SQLite file of the response cache. Default: none, but RUN/responses.sqlite of a run that pays."""
    run_budget_usd: float | None = None
    """The most dollars of all the run's starts, or of this command."""
    day_budget_usd: float | None = None
    """The most dollars of all commands of a day (UTC). Default: $PODIUM_DAY_BUDGET_USD."""


Calls = Annotated[CallOptions, Parameter(name="*", group="Workers' calls")]
"""The parameter of a verb that reads no team file: `calls: Calls = CallOptions()`."""


def open_limited_call_state(
    calls: CallOptions, pool: Pool, *, run: Path | None = None
) -> AbstractContextManager[CallState]:
    """The call state of a pool. Without a run's folder, its calls belong to no run, and no run's budget holds."""
    from podium.calls.call_state import open_call_state  # noqa: PLC0415 - `podium --help` needs no worker
    from podium.workers.base import has_paid_workers  # noqa: PLC0415

    return open_call_state(
        paid_workers=has_paid_workers(pool),
        cache=calls.cache,
        day_usd=calls.day_budget_usd,
        run_usd=None if run is None else calls.run_budget_usd,
        run=run,
    )


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class TeamOptions:
    """Which team, and what overrides its file."""

    team: str | None = None
    """The team: a file, as `podium init` writes one, or a shipped or installed team's name. Default: ./team.toml."""
    no_team: Flag = False
    """Leave the team.toml of the working folder out."""
    pool: str | None = None
    """The workers: those of this team file or of the team of this name (pool)."""

    def overrides(self) -> tuple[str, ...]:
        """The short options as `key=value`."""
        from podium.config import to_overrides  # noqa: PLC0415 - loads pydantic, which help does not need

        return to_overrides(
            {OPTION_KEYS[name]: value for name, value in vars(self).items() if name in OPTION_KEYS}
        )


@dataclass(frozen=True)
class RunOptions(CallOptions, TeamOptions):
    """The options of a team and of all its calls."""


@dataclass(frozen=True)
class PlannerOptions(RunOptions):
    """The options of verbs in which a planner plans."""

    planner: str | None = None
    """conductor; conductor:WORKER, a worker that conducts untrained; or a baseline: single:WORKER,
    self-consistency:WORKER:SAMPLES, constant:FILE or random (plan.planner)."""
    conductor: str | None = None
    """A trained Conductor's folder, or the name of a shipped one (conductor.checkpoint)."""
    max_steps: int | None = None
    """The most steps of a plan (plan.max_steps). Default: as many as the Conductor was trained with, else 5."""
    rounds: int | None = None
    """The most plans for a question; with 2 or more, the planner sees its answer and may plan again (budget.rounds).
    Default: as many as the Conductor was trained with, else 1."""
    budget_usd: float | None = None
    """The most dollars for a question (budget.usd)."""

    def overrides(self) -> tuple[str, ...]:
        """The options as overrides of the team file. A Conductor beside another planner is refused."""
        if self.conductor is not None and self.planner not in (None, "conductor"):
            raise UsageError(f"--planner {self.planner} names who plans; leave --conductor out.")
        return super().overrides()


@dataclass(frozen=True)
class AskOptions(PlannerOptions):
    """The options of questions of the command line."""

    store: str | None = None
    """Where traces are kept (store): an SQLite file, or for a server, which keeps keys there too,
    postgresql://USER@HOST/DATABASE. Default: $PODIUM_STORE, else ~/.local/share/podium/traces.sqlite."""


@dataclass(frozen=True)
class ServeOptions(AskOptions):
    """The options of a server."""

    host: str | None = None
    """The address to listen on (serve.host). Any other than this machine's own (127.0.0.1, ::1, localhost) needs keys.
    Default: 127.0.0.1."""
    port: int | None = None
    """The port; 0 takes a free one (serve.port). Default: 8080."""
    drain: float | None = None
    """Seconds that questions in flight have to end after the signal (serve.drain). Default: 30."""
    processes: int | None = None
    """Processes that answer (serve.processes). Default: 1."""


@dataclass(frozen=True)
class EvalOptions(PlannerOptions):
    """The options of a comparison."""

    tasks: str | None = None
    """The task set, a task file (NAME.toml), a table (NAME.csv, NAME.jsonl) or a recording (NAME.parquet) (eval.tasks).
    Default: the run's."""
    split: str | None = None
    """The split to compare on (eval.split). Default: test."""
    questions: int | None = None
    """How many questions to compare on (eval.questions). Default: 400."""


Override = Annotated[
    str, Parameter(help="Any key of a team file, as budget.calls=3 or worker.large.limits.timeout=60.")
]
"""`key=value` on a command line; `*overrides: Override`."""
