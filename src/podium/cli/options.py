"""The options that several verbs share, as the parser fills them."""

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

StoreFile = Annotated[
    Path | None,
    Parameter(
        name="--store",
        help="The SQLite file of traces. Default: that of team.toml, $PODIUM_STORE, else "
        "~/.local/share/podium/traces.sqlite.",
    ),
]

StorePlace = Annotated[
    str | None,
    Parameter(
        name="--store",
        help="The store of traces and keys: an SQLite file, or postgresql://USER@HOST/DATABASE. Default: that of "
        "team.toml, $PODIUM_STORE, else ~/.local/share/podium/traces.sqlite.",
    ),
]


@Parameter(name="*", group="Workers' calls")
@dataclass(frozen=True)
class DispatchOptions:
    """The response cache and the day's budget, which all calls to workers share."""

    cache: Path | None = None
    """The SQLite file of the response cache. A run with paid workers has one by default: RUN/responses.sqlite."""
    day_budget_usd: float | None = None
    """The most dollars that all commands of a day (UTC) may cost together. Default: $PODIUM_DAY_BUDGET_USD."""

    def open(
        self,
        pool: Pool,
        *,
        pays: bool = False,
        run: Path | None = None,
        run_budget_usd: float | None = None,
    ) -> AbstractContextManager[Dispatcher]:
        """The dispatcher of a pool, as `podium.calls.dispatcher.open_dispatcher` opens it."""
        from podium.calls.dispatcher import open_dispatcher  # noqa: PLC0415 - `podium --help` needs no worker
        from podium.workers.traits import has_paid_workers  # noqa: PLC0415

        return open_dispatcher(
            paid_workers=has_paid_workers(pool),
            cache=self.cache,
            day_usd=self.day_budget_usd,
            run_usd=run_budget_usd,
            pays=pays,
            run=run,
        )


RunBudget = Annotated[
    float | None,
    Parameter(
        name="--run-budget-usd",
        group="Workers' calls",
        help="The most dollars that the run may cost, over all its starts.",
    ),
]

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
