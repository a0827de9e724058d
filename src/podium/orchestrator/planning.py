"""Opens the planner that settings or the pool's file name, a Conductor or a baseline, and finds its fallback worker.

This module alone decides which Conductor plans where neither names one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from podium.baselines import VOTE, find_baseline, open_baseline
from podium.baselines.by_ratings import ByRatings
from podium.baselines.plans import refuse_without_vote, rounds_of
from podium.conductor.checkpoint import Checkpoint, PlanSettings
from podium.conductor.leaving import QuarantinePlanner
from podium.conductor.opening import (
    ConductorSettings,
    build_endpoint,
    conductor_settings,
    make_worker_conductor,
    open_conductor,
    refuse_misfit,
)
from podium.conductor.plan_format import FORMAT_WORDS
from podium.conductor.planner import Conductor
from podium.conductor.podium_file import read_podium_file
from podium.conductor.process_policy import PolicyProcesses
from podium.errors import ConfigError, UsageError, WorkerError
from podium.executor import Dispatcher, Ledger
from podium.executor.checkup import CheckResult
from podium.executor.ledger import SpendLimit
from podium.orchestrator.planner_settings import PlannerSettings
from podium.planner import Plan, Planner, PlanRequest, paid_plan
from podium.shipped import shipped_checkpoint
from podium.types import Budget, Price, Question
from podium.workers.base import Worker
from podium.workers.pool import Pool, has_paid_workers, has_real_workers, is_tool, real_workers
from podium.workers.replay import ReplayWorker
from podium.workflow import PlanError

_CHECK = "What is 17 plus 25?"
_CHOSEN = "a worker of the pool"


@dataclass(frozen=True, slots=True)
class OpenedPlanner:
    """A planner with its fallback worker and the connections that it has open."""

    planner: Planner
    description: str
    """Which planner it is, and why, in words for messages."""
    fallback: str | None = None
    """The worker that answers a question when planning has failed; None: such a question fails."""
    release: Callable[[], Awaitable[None]] | None = None
    """Closes the planner's own endpoint; None: it has none."""

    async def close(self) -> None:
        """Close the planner's connections. Calling twice is fine; a later plan opens new ones."""
        if self.release is not None:
            await self.release()


def open_planner(
    settings: PlannerSettings,
    pool: Pool,
    *,
    seed: str,
    called: Callable[[str], str] = str,
    dispatcher: Dispatcher | None = None,
    processes: PolicyProcesses | None = None,
) -> OpenedPlanner:
    """Open the planner of `settings` for the workers of `pool`. The caller closes it.

    If `settings` name no planner, the `[conductor]` table of the pool's file does. If that names none either, the
    shipped Conductor plans for simulated workers. In any other pool each question goes to the worker with the best
    rating, and without ratings the first model of the file conducts, untrained.

    Args:
        seed: seeds a planner that plans at random.
        called: returns the caller's name for a key of the settings, for messages.
        dispatcher: enforces the limits of a worker that conducts; None: a new one.
        processes: the processes that run a small checkpoint; None: this process runs it.

    Raises:
        UsageError: settings exclude each other or name something that does not exist, or the checkpoint must not
            conduct this pool.
    """
    fault = settings.conflict(called)
    if fault is not None:
        raise UsageError(fault)
    if settings.conducting_worker is not None:
        worker = pool.named(settings.conducting_worker)
        return _leaving(settings, _of_worker(worker, conductor_settings(pool), pool, dispatcher), pool)
    if settings.planner != "conductor":
        return _of_baseline(settings.planner, pool, seed)
    table = conductor_settings(pool)
    first = first_model(pool)
    source = checkpoint_of(settings, pool)
    if source is not None:
        level = settings.cost_sensitivity
        if level is None and settings.conductor is None:
            level = table.cost_sensitivity
        opened = _of_checkpoint(source, level, pool, called, processes=processes)
    elif settings.served:
        opened = _of_endpoint(_endpoint(settings), pool, dispatcher)
    else:
        opened = _of_file(settings, table, pool, called, first=first, dispatcher=dispatcher)
    fallback = table.fallback or opened.fallback or (None if first is None else first.profile.name)
    return _leaving(settings, replace(opened, fallback=fallback), pool)


def _leaving(settings: PlannerSettings, opened: OpenedPlanner, pool: Pool) -> OpenedPlanner:
    if not settings.quarantine_failing:
        return opened
    tools = [worker.profile.name for worker in pool if is_tool(worker)]
    return replace(opened, planner=QuarantinePlanner(opened.planner, tools))


def plan_settings(settings: PlannerSettings, pool: Pool) -> PlanSettings:
    """The plan settings with which the Conductor of `open_planner` was trained; for an untrained planner, the defaults;
    for a baseline, as many rounds as its method needs.

    Applications use its rounds and its steps unless the user sets others.

    Raises:
        UsageError: its checkpoint or its podium.json cannot be read.
    """
    if settings.conducting_worker is not None:
        return PlanSettings()
    if settings.planner != "conductor":
        return PlanSettings(rounds=rounds_of(open_baseline(settings.planner, pool.profiles)))
    table = conductor_settings(pool)
    source = checkpoint_of(settings, pool)
    if source is not None:
        plan = Checkpoint.read(source).plan
    elif settings.served:
        plan = _trained_plan(_endpoint(settings))
    elif table.base_url is not None:
        plan = _trained_plan(table)
    else:
        plan = None
    return plan or PlanSettings()


def checkpoint_of(settings: PlannerSettings, pool: Pool) -> str | None:
    """The checkpoint from which the planner of `open_planner` writes its plans: a shipped one's name, or a folder.
    None: it has none."""
    if settings.planner != "conductor" or settings.served:
        return None
    if settings.conductor is not None:
        return settings.conductor
    table = conductor_settings(pool)
    if table.checkpoint is not None:
        return _source(table.checkpoint, pool)
    embedded = table.base_url is None and table.worker is None and first_model(pool) is None
    return "conductor" if embedded else None


def first_model(pool: Pool) -> Worker | None:
    """The first worker of the pool that is not simulated, models before programs; None: all are simulated."""
    return min(real_workers(pool), key=_need_not_be_model, default=None)


async def check_planner(
    opened: OpenedPlanner, pool: Pool, accounts: Sequence[SpendLimit] = ()
) -> CheckResult:
    """Let the planner plan one small question, and report the result. This costs what a plan costs.

    Args:
        accounts: the dollars from which the plan is paid; its error is "budget" if one of them refuses it.
    """
    started = asyncio.get_running_loop().time()
    error: str | None
    try:
        plan = await paid_plan(
            opened.planner,
            PlanRequest(Question(text=_CHECK), pool.profiles_for(_CHECK), seed="check"),
            Ledger(Budget(), accounts=accounts),
        )
    except (WorkerError, UsageError) as trouble:
        plan, text = Plan("", PlanError("planner_failed", str(trouble))).with_lost(trouble), str(trouble)
        error = trouble.kind if isinstance(trouble, WorkerError) else "usage"
    else:
        failed = isinstance(plan.decision, PlanError)
        error = "no_plan" if failed else None
        text = f"It wrote no plan. {plan.decision}" if failed else plan.text
    return CheckResult(
        opened.planner.name,
        error is None,
        asyncio.get_running_loop().time() - started,
        text,
        error=error,
        input_tokens=plan.usage.input_tokens,
        output_tokens=plan.usage.output_tokens,
        estimated=plan.usage.estimated,
        cost_usd=plan.cost_usd,
        unpriced=plan.unpriced,
        role="planner",
        plan_format=_plan_format(opened.planner),
    )


def _plan_format(planner: Planner) -> str | None:
    known = planner.plan_format if isinstance(planner, Conductor) else None
    return None if known is None else FORMAT_WORDS[known]


def pays_for_plans(settings: PlannerSettings, pool: Pool) -> bool:
    """Whether the planner is a model that costs money."""
    if settings.conducting_worker is not None:
        return has_paid_workers(pool)
    if settings.planner != "conductor" or settings.conductor is not None:
        return False
    table = conductor_settings(pool)
    if not settings.served and _is_routed(table, pool):
        return False
    return bool(settings.served or table.base_url or table.worker) or has_paid_workers(pool)


def _of_baseline(name: str, pool: Pool, seed: str) -> OpenedPlanner:
    """A baseline. What it needs and the pool cannot give is refused here, before a question is answered."""
    recorded = any(isinstance(worker, ReplayWorker) for worker in pool)
    planner = open_baseline(name, pool.profiles, seed=seed, recorded=recorded)
    found = find_baseline(name)
    if found is not None and VOTE in found[0].needs(found[1]):
        refuse_without_vote(pool.profiles)
    return OpenedPlanner(planner, f"the baseline {planner.name}")


def _of_file(
    settings: PlannerSettings,
    table: ConductorSettings,
    pool: Pool,
    called: Callable[[str], str],
    *,
    first: Worker | None,
    dispatcher: Dispatcher | None,
) -> OpenedPlanner:
    """The planner where neither settings nor file name a checkpoint; `first` is the pool's first model."""
    worker = first if table.worker is None else pool.named(table.worker)
    routed = _is_routed(table, pool)
    if settings.cost_sensitivity is not None:
        plans = "the ratings choose a worker" if routed else "a model conducts untrained"
        raise UsageError(f"{called('cost_sensitivity')} is for a checkpoint, and here {plans}; leave it out.")
    if routed:
        planner = ByRatings()
        return OpenedPlanner(
            planner,
            f"the baseline {planner.name}, since the pool has ratings and its file names no Conductor",
        )
    if table.base_url is not None:
        try:
            return _of_endpoint(table, pool, dispatcher)
        except ConfigError as error:
            raise error if pool.source is None else pool.source.refuse(error) from None
    assert worker is not None
    why = "the pool's first model, since its file names none"
    return _of_worker(worker, table, pool, dispatcher, why=why if table.worker is None else _CHOSEN)


def _is_routed(table: ConductorSettings, pool: Pool) -> bool:
    """Whether ratings decide which worker answers: nobody is named to conduct, and real workers have ratings."""
    named = table.checkpoint or table.base_url or table.worker
    return (
        named is None and has_real_workers(pool) and any(profile.rating for profile in pool.profiles_for(""))
    )


def _of_worker(
    worker: Worker,
    table: ConductorSettings,
    pool: Pool,
    dispatcher: Dispatcher | None,
    *,
    why: str = _CHOSEN,
) -> OpenedPlanner:
    """A worker of the pool writes the plans, by the Conductor's prompt."""
    # The table may be that of another, trained Conductor.
    settings = table if table.settings is None else ConductorSettings()
    return OpenedPlanner(
        make_worker_conductor(worker, pool, settings, dispatcher),
        f"{worker.profile.name}, {why}, untrained",
        fallback=table.fallback or worker.profile.name,
    )


def _of_checkpoint(
    source: str,
    cost_sensitivity: float | None,
    pool: Pool,
    called: Callable[[str], str],
    *,
    processes: PolicyProcesses | None,
) -> OpenedPlanner:
    conductor = open_conductor(
        source,
        pool,
        cost_sensitivity=cost_sensitivity,
        option=called("cost_sensitivity"),
        processes=processes,
    )
    questions = Checkpoint.read(source).conducts.questions
    return OpenedPlanner(conductor, f"the checkpoint {source}, trained on {questions}")


def _endpoint(settings: PlannerSettings) -> ConductorSettings:
    """The endpoint of the settings, as the `[conductor]` table of a pool file would name it."""
    price = settings.conductor_price
    return ConductorSettings(
        base_url=settings.conductor_url,
        model=settings.conductor_model,
        api_key_env=settings.conductor_key_env,
        price=None if price is None else Price(input=price[0], output=price[1]),
        settings=settings.conductor_settings,
    )


def _source(name: str, pool: Pool) -> str:
    """A checkpoint that the pool's file names: a shipped one, or a folder relative to the file's."""
    return name if shipped_checkpoint(name) else str(pool.folder / name)


def _trained_plan(endpoint: ConductorSettings) -> PlanSettings | None:
    return None if endpoint.settings is None else read_podium_file(endpoint.settings).plan


def _of_endpoint(settings: ConductorSettings, pool: Pool, dispatcher: Dispatcher | None) -> OpenedPlanner:
    training = "untrained"
    if settings.settings is not None:
        trained = read_podium_file(settings.settings)
        refuse_misfit(settings.settings, trained.what_it_conducts, pool)
        settings = settings.with_training(trained)
        training = f"trained on {trained.what_it_conducts.questions}"
    endpoint = build_endpoint(settings, pool)
    return OpenedPlanner(
        make_worker_conductor(endpoint, pool, settings, dispatcher, priced=settings.price is not None),
        f"{endpoint.profile.name} at {settings.base_url}, {training}",
        release=endpoint.close,
    )


def _need_not_be_model(worker: Worker) -> bool:
    """Whether it is a program, a function or a team. These need not be models."""
    return worker.identity is None or worker.identity.get("kind") not in ("openai", "gguf", "litellm")
