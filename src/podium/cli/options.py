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
EarlyStop = Annotated[
    Flag,
    Parameter(
        name="--early-stop",
        help="Ask those whom a vote is to hear in turn, the cheapest first, and nobody more once it is certain.",
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
    """Who plans."""

    planner: str = "conductor"
    """conductor, or a baseline: single:WORKER, self-consistency:WORKER:SAMPLES, constant:FILE or random."""
    conductor: str | None = None
    """A Conductor's checkpoint folder; or warmstart, the shipped one before its training."""
    cost_sensitivity: Annotated[float | None, Parameter(name=["--cost-sensitivity", "--thrift"])] = None
    """Level of cost sensitivity, for a Conductor that knows some: 0 saves nothing, 2.5 is between levels 2 and 3."""
    conductor_url: str | None = None
    """An OpenAI-compatible endpoint whose model conducts, up to and without /chat/completions."""
    conductor_model: str | None = None
    """The name of the model there."""
    conductor_key_env: str | None = None
    """The environment variable that holds the key for it."""
    conductor_price: Annotated[tuple[float, float] | None, Parameter(negative="")] = None
    """Its dollars per million tokens, input and output."""


@Parameter(name="*", group="Budget")
@dataclass(frozen=True)
class BudgetOptions:
    """Hard limits for the question."""

    rounds: int = 1
    """Plans at most: with 2 or more, the planner sees its answer and may plan again."""
    budget_calls: int | None = None
    """Worker calls at most."""
    budget_tokens: int | None = None
    """Tokens at most, workers and planner together."""
    budget_usd: float | None = None
    """Dollars at most."""
    budget_seconds: float | None = None
    """Seconds at most."""


@Parameter(name="*", group="Encoder")
@dataclass(frozen=True)
class EncoderOptions:
    """What learned routers of a recording read questions with, besides n-grams."""

    encoder_url: str | None = None
    """An OpenAI-compatible endpoint whose model embeds, up to and without /embeddings."""
    encoder_model: str | None = None
    """The name of the model there."""
    encoder_key_env: str | None = None
    """The environment variable that holds the key for it."""


@Parameter(name="*", group="Workers' calls")
@dataclass(frozen=True)
class DispatchOptions:
    """What calls to workers share."""

    cache: Path | None = None
    """An SQLite file of answers that were paid for and are not asked again. In a run's folder: responses.sqlite."""
    replay: Flag = False
    """Answer from the cache alone: nothing is asked, and what is not in it fails."""
    day_budget_usd: float | None = None
    """Dollars at most that all commands of a day (UTC) may cost together. Default: $PODIUM_DAY_BUDGET_USD."""


RunBudget = Annotated[
    float | None,
    Parameter(
        name="--run-budget-usd",
        group="Workers' calls",
        help="Dollars at most that the run may cost, over all its starts.",
    ),
]

DEFAULT_CALLS = DispatchOptions()
SHIPPED_CONDUCTOR = PlannerOptions()
UNLIMITED = BudgetOptions()
NO_ENCODER = EncoderOptions()


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_time(text: str, now: datetime) -> datetime:
    """The moment of "2026-03-01", of "2026-03-01T12:30" (UTC unless it says otherwise), or "12h", "2d" ago.

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
            f"{wanted!r} is not a moment; write a date as 2026-03-01, or 12h or 2d ago."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
