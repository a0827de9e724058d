"""The options that name a team, and those that spell its keys shortly.

Whatever a team file has can be set by `key=value` on the command line. `SPELLINGS` gives a few keys a short option too.
`team_file` finds the file that the options name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.cli.options import Flag
from podium.config import overrides_of
from podium.errors import UsageError

SPELLINGS: Mapping[str, str] = {
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
    "tasks": "eval.tasks",
    "split": "eval.split",
    "questions": "eval.questions",
}
"""The key of each short option, by the name of its field."""


TraceStorePlace = Annotated[
    str | None,
    Parameter(
        help="Where traces are kept (store): an SQLite file, or for a server, which keeps keys there too, "
        "postgresql://USER@HOST/DATABASE. Default: $PODIUM_STORE, else ~/.local/share/podium/traces.sqlite."
    ),
]


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class TeamOptions:
    """Which team, and what differs from its file."""

    team: Annotated[
        str | None,
        Parameter(
            help="The team: a file, as `podium init` writes one, or the name of a shipped or installed team. "
            "Default: team.toml in the working folder."
        ),
    ] = None
    no_team: Annotated[Flag, Parameter(help="Leave the team.toml of the working folder out.")] = False
    pool: Annotated[
        str | None, Parameter(help="The workers: those of this team file or of the team of this name (pool).")
    ] = None
    day_budget_usd: Annotated[
        float | None,
        Parameter(
            help="The most dollars that all commands of a day (UTC) may cost together (budget.day_usd). Default: "
            "$PODIUM_DAY_BUDGET_USD."
        ),
    ] = None

    def overrides(self) -> tuple[str, ...]:
        """The short options as `key=value`."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return overrides_of({SPELLINGS[name]: value for name, value in given.items() if name in SPELLINGS})


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class CallOptions(TeamOptions):
    """The same, for verbs that keep answers."""

    cache: Annotated[
        Path | None,
        Parameter(
            help="The SQLite file of the response cache (cache). A run with paid workers has one by default: "
            "RUN/responses.sqlite."
        ),
    ] = None


RunBudgetUsd = Annotated[
    float | None,
    Parameter(help="The most dollars that the run may cost, over all its starts (budget.run_usd)."),
]


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class RunOptions(CallOptions):
    """The same, for runs in which no planner plans, or many do."""

    run_budget_usd: RunBudgetUsd = None


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class PlannerOptions(CallOptions):
    """The same, for verbs in which a planner plans."""

    planner: Annotated[
        str | None,
        Parameter(
            help="conductor; conductor:WORKER, a worker that conducts untrained; or a baseline: single:WORKER, "
            "self-consistency:WORKER:SAMPLES, constant:FILE or random (plan.planner)."
        ),
    ] = None
    conductor: Annotated[
        str | None,
        Parameter(help="A trained Conductor's folder, or the name of a shipped one (conductor.checkpoint)."),
    ] = None
    max_steps: Annotated[
        int | None,
        Parameter(
            help="The most steps of a plan (plan.max_steps). Default: as many as the Conductor was trained with, "
            "else 5."
        ),
    ] = None
    rounds: Annotated[
        int | None,
        Parameter(
            help="The most plans for a question; with 2 or more, the planner sees its answer and may plan again "
            "(budget.rounds). Default: as many as the Conductor was trained with, else 1."
        ),
    ] = None
    budget_usd: Annotated[float | None, Parameter(help="The most dollars for a question (budget.usd).")] = (
        None
    )

    def overrides(self) -> tuple[str, ...]:
        """As before.

        Raises:
            UsageError: a planner without a Conductor is named, and a Conductor.
        """
        if self.conductor is not None and self.planner not in (None, "conductor"):
            raise UsageError(f"--planner {self.planner} names who plans; leave --conductor out.")
        return super().overrides()


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class AskOptions(PlannerOptions):
    """The same, for questions of the command line."""

    store: TraceStorePlace = None


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class ServeOptions(PlannerOptions):
    """The same, for a server."""

    run_budget_usd: Annotated[
        float | None,
        Parameter(
            help="The most dollars that all questions together may cost until the server ends (budget.run_usd)."
        ),
    ] = None
    store: TraceStorePlace = None
    host: Annotated[
        str | None,
        Parameter(
            help="The address to listen on (serve.host). Any other than this machine's own (127.0.0.1, ::1, "
            "localhost) needs keys. Default: 127.0.0.1."
        ),
    ] = None
    port: Annotated[
        int | None, Parameter(help="The port; 0 takes a free one (serve.port). Default: 8080.")
    ] = None
    drain: Annotated[
        float | None,
        Parameter(
            help="Seconds that questions in flight have to end after the signal (serve.drain). Default: 30."
        ),
    ] = None


@Parameter(name="*", group="Team")
@dataclass(frozen=True)
class EvalOptions(PlannerOptions):
    """The same, for a comparison."""

    run_budget_usd: RunBudgetUsd = None
    tasks: Annotated[
        str | None,
        Parameter(
            help="The task set, a task file (NAME.toml), a table (NAME.csv, NAME.jsonl) or a recording "
            "(NAME.parquet) (eval.tasks). Default: the run's."
        ),
    ] = None
    split: Annotated[str | None, Parameter(help="The split to compare on (eval.split). Default: test.")] = (
        None
    )
    questions: Annotated[
        int | None, Parameter(help="How many questions to compare on (eval.questions). Default: 400.")
    ] = None


KEYS_HELP = "Any key of a team file, as budget.calls=3 or worker.large.limits.timeout=60."
Keys = Annotated[str, Parameter(help=KEYS_HELP)]
"""`key=value` on a command line; `*keys: Keys`."""
