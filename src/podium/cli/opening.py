"""Opens what the calls of a verb share, where its options and not a team say what that is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podium.cli.options import DispatchOptions
from podium.executor import Dispatcher
from podium.team import dispatching
from podium.workers.pool import Pool


@asynccontextmanager
async def open_dispatcher(
    options: DispatchOptions,
    pool: Pool,
    *,
    pays: bool = False,
    run: Path | None = None,
    run_budget_usd: float | None = None,
) -> AsyncIterator[Dispatcher]:
    """`podium.team.dispatching.open_dispatcher`, with the options of a verb."""
    with dispatching.open_dispatcher(
        pool,
        cache=options.cache,
        replay=options.replay,
        day_usd=options.day_budget_usd,
        run_usd=run_budget_usd,
        pays=pays,
        run=run,
    ) as dispatcher:
        yield dispatcher
