"""Opens what a command's calls to workers share: the response cache, the accounts of run and day, who rests.

A run's folder has a cache and an account of its own where its workers are paid for: a run that was killed pays for
nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

from podium.cli.options import DispatchOptions, PlannerOptions
from podium.cli.planning import to_settings
from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.executor.accounts import UNLIMITED_USD, Account, open_day_account
from podium.executor.state_file import CooldownFile
from podium.orchestrator.planning import pays_for_plans
from podium.workers.pool import Pool, has_real_workers
from podium.workers.response_cache import ResponseCache

RESPONSES, SPENDING = "responses.sqlite", "spending.sqlite"
"""In a run's folder."""


@asynccontextmanager
async def open_dispatcher(
    options: DispatchOptions,
    pool: Pool,
    *,
    planner: PlannerOptions | None = None,
    run: Path | None = None,
    run_budget_usd: float | None = None,
) -> AsyncIterator[Dispatcher]:
    """The dispatcher of one command; its files are closed in the end.

    Args:
        pool: whom it leads to. Simulated workers cost nothing and answer the same again, whatever their prices say:
            for them alone neither cache nor account is opened unless an option names one.
        planner: a served one is paid for as workers are.
        run: the run's folder, made if missing.
        run_budget_usd: dollars that the run may cost, over all its starts; None: no limit.

    Raises:
        UsageError: options that exclude each other, or a file that cannot be used.
    """
    real = has_real_workers(pool)
    paid = real or (planner is not None and pays_for_plans(to_settings(planner), pool))
    with ExitStack() as files:
        path = options.cache or (run / RESPONSES if run is not None and real else None)
        if options.replay and path is None:
            raise UsageError("--replay answers from a response cache; name its file with --cache.")
        cache = None
        if path is not None:
            cache = files.enter_context(ResponseCache(path, replay=options.replay))
        accounts = []
        if run_budget_usd is not None or (run is not None and paid):
            place = None if run is None else run / SPENDING
            limit = UNLIMITED_USD if run_budget_usd is None else run_budget_usd
            accounts.append(files.enter_context(closing(Account(place, "run", limit))))
        day = open_day_account(options.day_budget_usd) if paid else None
        if day is not None:
            accounts.append(files.enter_context(closing(day)))
        cooldowns = files.enter_context(closing(CooldownFile()))
        yield Dispatcher(cache=cache, accounts=accounts, cooldowns=cooldowns)
