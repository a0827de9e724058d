"""The options that several verbs share, as the parser fills them. `team_options` has those of a team."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.calls import Dispatcher
    from podium.workers.pool import Pool

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""An option without a value; it has no --no- form."""

DEFAULT_STORE = "$PODIUM_STORE, else ~/.local/share/podium/traces.sqlite"

StoreFile = Annotated[
    Path | None,
    Parameter(
        name="--store", help=f"The SQLite file of traces. Default: that of team.toml, {DEFAULT_STORE}."
    ),
]

StorePlace = Annotated[
    str | None,
    Parameter(
        name="--store",
        help="The store of traces and keys: an SQLite file, or postgresql://USER@HOST/DATABASE. Default: that of "
        f"team.toml, {DEFAULT_STORE}.",
    ),
]


@Parameter(name="*", group="Workers' calls")
@dataclass(frozen=True)
class DispatchOptions:
    """The response cache and the budgets, which all calls to workers share, for verbs that read no team file."""

    cache: Path | None = None
    """The SQLite file of the response cache. Default: none, but RUN/responses.sqlite of a run that pays."""
    day_budget_usd: float | None = None
    """The most dollars of all commands of a day (UTC) together. Default: $PODIUM_DAY_BUDGET_USD."""
    run_budget_usd: float | None = None
    """The most dollars that the run may cost, over all its starts."""

    def open(self, pool: Pool, *, run: Path | None = None) -> AbstractContextManager[Dispatcher]:
        """The dispatcher of a pool, as `podium.calls.dispatcher.open_dispatcher` opens it.

        Args:
            run: the run's folder; None: these calls are no part of a run, and its budget does not hold.
        """
        from podium.calls.dispatcher import open_dispatcher  # noqa: PLC0415 - `podium --help` needs no worker
        from podium.workers.traits import has_paid_workers  # noqa: PLC0415

        return open_dispatcher(
            paid_workers=has_paid_workers(pool),
            cache=self.cache,
            day_usd=self.day_budget_usd,
            run_usd=None if run is None else self.run_budget_usd,
            run=run,
        )


DEFAULT_CALLS = DispatchOptions()


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
