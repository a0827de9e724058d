"""Opens the planner that the options name, and closes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

from podium.cli.options import PlannerOptions
from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.orchestrator import planning
from podium.orchestrator.planner_settings import PlannerSettings
from podium.orchestrator.planning import OpenedPlanner
from podium.workers.pool import Pool


@asynccontextmanager
async def open_planner(
    options: PlannerOptions, pool: Pool, *, seed: str, dispatcher: Dispatcher | None = None
) -> AsyncIterator[OpenedPlanner]:
    """The planner, and in the end its connections given back.

    Raises:
        UsageError: options that exclude each other, or name what there is not; a checkpoint that must not lead the
            pool.
    """
    opened = planning.open_planner(
        to_settings(options), pool, seed=seed, called=_option, dispatcher=dispatcher
    )
    try:
        yield opened
    finally:
        await opened.close()


def to_settings(options: PlannerOptions) -> PlannerSettings:
    """What the options say.

    Raises:
        UsageError: they exclude each other.
    """
    # Not validated: what is wrong is said in the words of the options.
    settings = PlannerSettings.model_construct(**asdict(options))
    fault = settings.fault(_option)
    if fault is not None:
        raise UsageError(fault)
    return settings


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"
