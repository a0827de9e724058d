"""The options that several verbs share, as the parser fills them. `opening` opens what they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.errors import UsageError

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""An option without a value; it has no --no- form."""

PoolName = Annotated[
    str | None,
    Parameter(
        name="--pool",
        help="The workers: a TOML file, or a shipped pool's name. Default: embedded, simulated workers.",
    ),
]
NamedPool = Annotated[
    str | None,
    Parameter(
        name="--pool",
        help="The workers: a TOML file, as `podium init` writes one, or a shipped pool's name. Needed, here or in "
        "podium.toml.",
    ),
]
EarlyStop = Annotated[
    Flag,
    Parameter(
        name="--early-stop",
        help="Call the cheapest workers of a vote first, and call no more of them once its result is certain.",
    ),
]
StoreFile = Annotated[
    Path | None,
    Parameter(
        name="--store",
        help="The SQLite file of traces. Default: $PODIUM_STORE, else ~/.local/share/podium/traces.sqlite.",
    ),
]


@Parameter(name="*", group="Planner")
@dataclass(frozen=True)
class PlannerOptions:
    """The planner, and the model or checkpoint that it plans with."""

    planner: str = "conductor"
    """conductor; conductor:WORKER, a worker that conducts untrained; or a baseline: single:WORKER,
    self-consistency:WORKER:SAMPLES, constant:FILE or random."""
    conductor: str | None = None
    """A trained Conductor's folder, or the name of a shipped one: conductor, warmstart, world-conductor or
    world-warmstart."""
    cost_sensitivity: float | None = None
    """How much to save, if the Conductor knows levels of cost sensitivity: 0 is nothing, 2.5 between levels 2 and 3."""
    quarantine_failing: Flag = False
    """Leave a worker for a while when the outcomes of its plans say that it has begun to fail. Without outcomes, from
    the callers of a server or the grader of an evaluation, nobody is left."""
    conductor_url: str | None = None
    """Address of an OpenAI-compatible endpoint whose model conducts, without /chat/completions."""
    conductor_model: str | None = None
    """The endpoint's name for this model."""
    conductor_key_env: str | None = None
    """The environment variable that holds the endpoint's API key."""
    conductor_price: Annotated[tuple[float, float] | None, Parameter(negative="")] = None
    """This model's price in dollars per million tokens: input, then output."""
    conductor_settings: str | None = None
    """If the endpoint serves a trained Conductor: its folder, its podium.json, or its name on the Hugging Face hub."""


@Parameter(name="*", group="Budget")
@dataclass(frozen=True)
class BudgetOptions:
    """Hard limits for the question."""

    rounds: int | None = None
    """The most plans for a question; with 2 or more, the planner sees its answer and may plan again. Default: as many
    as the Conductor was trained with, else 1."""
    budget_calls: int | None = None
    """The most worker calls for a question."""
    budget_tokens: int | None = None
    """The most tokens for a question, of workers and planner together."""
    budget_usd: float | None = None
    """The most dollars for a question."""
    budget_seconds: float | None = None
    """The most seconds for a question."""


@Parameter(name="*", group="Workers' calls")
@dataclass(frozen=True)
class DispatchOptions:
    """The response cache and the day's budget, which all calls to workers share."""

    cache: Path | None = None
    """The SQLite file of the response cache. A run with paid workers has one by default: RUN/responses.sqlite."""
    replay: Flag = False
    """Answer from the response cache alone: call no worker, and fail if the cache lacks an answer."""
    day_budget_usd: float | None = None
    """The most dollars that all commands of a day (UTC) may cost together. Default: $PODIUM_DAY_BUDGET_USD."""


RunBudget = Annotated[
    float | None,
    Parameter(
        name="--run-budget-usd",
        group="Workers' calls",
        help="The most dollars that the run may cost, over all its starts.",
    ),
]

DEFAULT_CALLS = DispatchOptions()
SHIPPED_CONDUCTOR = PlannerOptions()
UNLIMITED = BudgetOptions()


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_time(text: str, now: datetime) -> datetime:
    """The time of "2026-03-01" or "2026-03-01T12:30" (UTC unless it has an offset), or of "12h" or "2d" before `now`.

    Raises:
        UsageError: it is none of these.
    """
    wanted = text.strip()
    if ago := re.fullmatch(r"(\d{1,5})([mhdw])", wanted):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        moment = datetime.fromisoformat(wanted)
    except ValueError:
        raise UsageError(
            f"{wanted!r} is not a time; write a date such as 2026-03-01, or 12h or 2d for hours or days ago."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
