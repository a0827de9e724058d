"""Opens the planner that the options name, says what it lacks, and closes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

from podium.baselines import VOTE
from podium.cli.opening import open_console
from podium.cli.options import PlannerOptions
from podium.cli.printable import printable
from podium.conductor import Checkpoint
from podium.errors import UsageError
from podium.orchestrator import planning
from podium.planner import Planner
from podium.workers.planner_settings import PlannerSettings
from podium.workers.pool import Pool


@asynccontextmanager
async def open_planner(
    options: PlannerOptions, pool: Pool, *, seed: str, warn: bool = True
) -> AsyncIterator[Planner]:
    """The planner, and in the end its connections given back.

    Args:
        warn: whether stderr is told what a pool lacks for a Conductor that reads ratings.

    Raises:
        UsageError: options that exclude each other, or name what there is not.
    """
    opened = planning.open_planner(to_settings(options), pool, seed=seed, called=_option)
    if warn and options.conductor is not None and (lacking := _lacking(pool)) is not None:
        checkpoint = Checkpoint.read(options.conductor)
        if checkpoint.reads_ratings:
            open_console(stderr=True).print(
                f"{printable(str(checkpoint.path))} was trained on ratings of workers, and {printable(lacking)}",
                soft_wrap=True,
            )
    try:
        yield opened.planner
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


def _lacking(pool: Pool) -> str | None:
    """What a pool lacks for a Conductor that reads ratings, and the way out; None: nothing."""
    rated = pool.ratings.workers if pool.ratings is not None else {}
    others = [name for name in pool.names if name != VOTE]
    unrated = [name for name in others if name not in rated]
    if len(unrated) == len(others):
        return "the pool has none, so its plans may be unreadable; podium rate makes them."
    if VOTE not in pool.names:
        return (
            f"its plans end with a worker named {VOTE!r}, so they may be unreadable; "
            f'add a [[worker]] with name = "{VOTE}" and kind = "vote" to the pool, or call yours so.'
        )
    if unrated:
        return (
            f"the pool has none of {', '.join(unrated)}, so its plans may be unreadable; "
            "podium rate makes those of recorded workers and calculators, others are better left out."
        )
    return None


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"
