"""Opens what a verb's options name: question, tasks, planner, encoder, dispatcher, trace store.

`options` defines the options. Context managers close what they opened when the verb ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from podium.baselines.encoder import Encoder, open_encoder
from podium.cli.options import NO_ENCODER, BudgetOptions, DispatchOptions, EncoderOptions, PlannerOptions
from podium.cli.printable import printable
from podium.conductor.checkpoint import PlanSettings
from podium.conductor.process_policy import PolicyProcesses
from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.executor.accounts import UNLIMITED_USD, Account, open_day_account
from podium.executor.state_file import CooldownFile
from podium.orchestrator import planning
from podium.orchestrator.planner_settings import PlannerSettings
from podium.orchestrator.planning import OpenedPlanner, pays_for_plans
from podium.tasks import TaskSet, open_tasks, warnings_of
from podium.trace.store import TraceStore, default_path
from podium.types import Budget, Question
from podium.workers.pool import Pool, has_real_workers
from podium.workers.response_cache import ResponseCache


def open_console(*, stderr: bool = False) -> Console:
    """Where drawings are printed: colours on a terminal, plain text of 120 columns in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 120
    return console


def read_question(text: str) -> Question:
    """The question, read from standard input if `text` is "-".

    Raises:
        UsageError: it is empty, or cannot be decoded.
    """
    where = ""
    try:
        if text.strip() == "-":
            where = " on standard input"
            text = sys.stdin.read()
        text.encode()  # Where the locale is C, Python reads bytes that are no text as half characters.
    except UnicodeError:
        raise UsageError(f"The question{where} is not UTF-8 text; convert it, as with iconv.") from None
    if not text.strip():
        raise UsageError('The question is empty; write it in quotes, as in: podium ask "What is 6 x 7?"')
    return Question(text=text.strip())


def open_trace_store(path: Path | None, *, create: bool) -> TraceStore:
    """The store of traces at `path`; None: at its default path."""
    return TraceStore(path or default_path(), create=create)


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
    try:
        return Budget.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        option = "--rounds" if field == "rounds" else f"--budget-{field}"
        wanted = first["msg"].replace("Input should", "it should")
        raise UsageError(f"{option} {first['input']}: {wanted}.") from error


def open_questions(name: str, split: str, *, size: int, seed: int = 0, pool: Pool | None = None) -> TaskSet:
    """`open_tasks`, which also prints on standard error which questions were left out of the set."""
    tasks = open_tasks(name, split, size=size, seed=seed, pool=pool or ())
    console = open_console(stderr=True)
    for sentence in warnings_of(tasks):
        console.print(printable(sentence), soft_wrap=True)
    return tasks


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
        called=_option,
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
    fault = settings.fault(_option)
    if fault is not None:
        raise UsageError(fault)
    return settings


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def encoder_from_options(options: EncoderOptions, *, recorded: bool, replay: bool) -> Encoder | None:
    """The encoder that the options name, or None. The caller closes it.

    Args:
        recorded: whether the questions are a recording's.
        replay: whether workers' answers come from a response cache alone.

    Raises:
        UsageError: an option is missing or has no use here, or the address or key cannot be used.
    """
    if options == NO_ENCODER:
        return None
    if options.encoder_url is None or options.encoder_model is None:
        raise UsageError("An encoder needs both --encoder-url and --encoder-model.")
    if not recorded:
        raise UsageError("--encoder-url is only for routers that learn from a recording; leave it out.")
    if replay:
        raise UsageError("--replay makes no calls, and --encoder-url does; leave one of them out.")
    return open_encoder(
        options.encoder_url,
        options.encoder_model,
        key_env=options.encoder_key_env,
        option_name=_option,
    )


RESPONSES, SPENDING = "responses.sqlite", "spending.sqlite"
"""Names of the response cache and of the account in a run's folder."""


@asynccontextmanager
async def open_dispatcher(
    options: DispatchOptions,
    pool: Pool,
    *,
    planner: PlannerOptions | None = None,
    run: Path | None = None,
    run_budget_usd: float | None = None,
    spending: Path | None = None,
) -> AsyncIterator[Dispatcher]:
    """What the calls of one command share: response cache, accounts, cooldowns. Its files are closed at the end.

    A run with paid workers has a cache and an account in its folder, so that a resumed run pays for no answer twice.

    Args:
        pool: the workers. If all are simulated, they cost nothing and repeat their answers; then a cache or an account
            is opened only if an option names one.
        planner: its policy may be paid like a worker.
        run: the run's folder, made if missing.
        run_budget_usd: dollars that the run may cost, over all its starts; None: no limit.
        spending: the file in which processes share that budget, where there is no folder of a run.

    Raises:
        UsageError: options that exclude each other, or a file that cannot be used.
    """
    real = has_real_workers(pool)
    paid = real or (planner is not None and pays_for_plans(planner_settings(planner), pool))
    with ExitStack() as files:
        path = options.cache or (run / RESPONSES if run is not None and real else None)
        if options.replay and path is None:
            raise UsageError("--replay answers from a response cache; name its file with --cache.")
        cache = None
        if path is not None:
            cache = files.enter_context(ResponseCache(path, replay=options.replay))
        accounts = []
        if run_budget_usd is not None or (run is not None and paid):
            place = spending if run is None else run / SPENDING
            limit = UNLIMITED_USD if run_budget_usd is None else run_budget_usd
            accounts.append(files.enter_context(closing(Account(place, "run", limit))))
        day = open_day_account(options.day_budget_usd) if paid else None
        if day is not None:
            accounts.append(files.enter_context(closing(day)))
        cooldowns = files.enter_context(closing(CooldownFile()))
        yield Dispatcher(cache=cache, accounts=accounts, cooldowns=cooldowns)
