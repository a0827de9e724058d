"""Opens what a verb's options name: the planner, the dispatcher, the budget.

`options` defines the options. Context managers close what they opened when the verb ends. `terminal` and `questions`
open the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from podium.cli.options import BudgetOptions, DispatchOptions, PlannerOptions
from podium.conductor.checkpoint import PlanSettings
from podium.conductor.process_policy import PolicyProcesses
from podium.config import MOST_NUMBER
from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.executor.accounts import UNLIMITED_USD, Account, open_day_account
from podium.executor.state_file import CooldownFile
from podium.orchestrator import planning
from podium.orchestrator.planner_settings import PlannerSettings
from podium.orchestrator.planning import OpenedPlanner, pays_for_plans
from podium.types import Budget
from podium.workers.pool import Pool, has_paid_workers
from podium.workers.response_cache import ResponseCache


def budget_from_options(options: BudgetOptions, trained: PlanSettings | None = None) -> Budget:
    """The limits that the options set.

    Args:
        trained: how the Conductor was trained to plan; its rounds hold where the options give none.
    """
    given = {
        "rounds": (trained or PlanSettings()).rounds if options.rounds is None else options.rounds,
        "calls": options.budget_calls,
        "tokens": options.budget_tokens,
        "usd": options.budget_usd,
        "seconds": options.budget_seconds,
    }
    for name, amount in given.items():
        if amount is not None and amount > MOST_NUMBER:
            raise UsageError(f"--budget-{name} is too large; give at most {MOST_NUMBER:,}, or leave it out.")
    try:
        return Budget.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        option = "--rounds" if field == "rounds" else f"--budget-{field}"
        wanted = first["msg"].replace("Input should", "it should")
        raise UsageError(f"{option} {first['input']}: {wanted}.") from error


@asynccontextmanager
async def planner_from_options(
    options: PlannerOptions,
    pool: Pool,
    *,
    seed: str,
    dispatcher: Dispatcher | None = None,
    processes: PolicyProcesses | None = None,
) -> AsyncIterator[OpenedPlanner]:
    """The planner that the options name, with `open_planner`'s arguments. Its connections are closed at the end.

    Raises:
        UsageError: the options exclude each other or name something that does not exist, or the checkpoint does not
            fit the pool.
    """
    opened = planning.open_planner(
        planner_settings(options),
        pool,
        seed=seed,
        called=option_name,
        dispatcher=dispatcher,
        processes=processes,
    )
    try:
        yield opened
    finally:
        await opened.close()


def trained_plan(options: PlannerOptions, pool: Pool) -> PlanSettings:
    """How the Conductor that the options or the pool's file name was trained to plan; else the defaults.

    Raises:
        UsageError: as `planner_from_options`.
    """
    return planning.plan_settings(planner_settings(options), pool)


def planner_settings(options: PlannerOptions) -> PlannerSettings:
    """The planner options as settings.

    Raises:
        UsageError: the options exclude each other.
    """
    # Not validated here: `fault` names the option that is wrong; validation would name the settings key.
    settings = PlannerSettings.model_construct(**asdict(options))
    fault = settings.conflict(option_name)
    if fault is not None:
        raise UsageError(fault)
    return settings


def option_name(key: str) -> str:
    """How users write the option of a settings key."""
    return f"--{key.replace('_', '-')}"


def named_pool(name: str | None) -> str:
    """The pool that the command line or podium.toml names.

    Raises:
        UsageError: neither names one.
    """
    if name is not None:
        return name
    here = Path("pool.toml").is_file()
    way_out = (
        "Add --pool pool.toml for the one in this folder."
        if here
        else "`podium init` finds the models on this machine and writes pool.toml; then add --pool pool.toml."
    )
    raise UsageError(
        f"No pool is named, so there is nobody to ask. {way_out} (--pool embedded: simulated workers.)"
    )


RESPONSES, SPENDING = "responses.sqlite", "spending.sqlite"
"""Names of the response cache and of the account in a run's folder."""


@asynccontextmanager
async def open_dispatcher(
    options: DispatchOptions,
    pool: Pool,
    *,
    planner: PlannerOptions | None = None,
    pays: bool = False,
    run: Path | None = None,
    run_budget_usd: float | None = None,
    spending: Path | None = None,
) -> AsyncIterator[Dispatcher]:
    """What the calls of one command share: response cache, accounts, cooldowns. Its files are closed at the end.

    A run with paid workers has a cache and an account in its folder, so that a resumed run pays for no answer twice.

    Args:
        pool: the workers. If none costs money, they repeat their answers; then a cache or an account is opened only if
            an option names one.
        planner: its policy may be paid like a worker.
        pays: whether something else costs money: planners that are not among the options, or workers of further pools.
        run: the run's folder, made if missing.
        run_budget_usd: dollars that the run may cost, over all its starts; None: no limit.
        spending: the file in which processes share that budget, where there is no folder of a run.

    Raises:
        UsageError: options that exclude each other, or a file that cannot be used.
    """
    paid_workers = has_paid_workers(pool)
    pays = pays or paid_workers or (planner is not None and pays_for_plans(planner_settings(planner), pool))
    with ExitStack() as files:
        path = options.cache or (run / RESPONSES if run is not None and paid_workers else None)
        if options.replay and path is None:
            raise UsageError("--replay answers from a response cache; name its file with --cache.")
        cache = None
        if path is not None:
            cache = files.enter_context(ResponseCache(path, replay=options.replay))
        accounts = []
        if run_budget_usd is not None or (run is not None and pays):
            place = spending if run is None else run / SPENDING
            limit = UNLIMITED_USD if run_budget_usd is None else run_budget_usd
            accounts.append(files.enter_context(closing(Account(place, "run", limit))))
        day = open_day_account(options.day_budget_usd) if pays else None
        if day is not None:
            accounts.append(files.enter_context(closing(day)))
        cooldowns = files.enter_context(closing(CooldownFile()))
        yield Dispatcher(cache=cache, accounts=accounts, cooldowns=cooldowns)
