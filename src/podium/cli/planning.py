"""Opens the planner that the options name: a Conductor, local or served, or a baseline."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podium.baselines import open_baseline
from podium.cli.options import PlannerOptions
from podium.conductor.conducting import open_conductor, served_conductor, served_policy
from podium.conductor.served_policy import ServedPolicy
from podium.errors import UsageError
from podium.planner import Planner
from podium.workers.pool import Pool


@asynccontextmanager
async def open_planner(options: PlannerOptions, pool: Pool, *, seed: str) -> AsyncIterator[Planner]:
    """The planner, and in the end its connections given back.

    Raises:
        UsageError: options that exclude each other, or name what there is not.
    """
    served = (
        options.conductor_url,
        options.conductor_model,
        options.conductor_key_env,
        options.conductor_price,
    )
    if options.planner != "conductor":
        if options.conductor is not None or any(served):
            raise UsageError(
                f"--planner {options.planner} plans without a Conductor; leave the --conductor options out."
            )
        if options.thrift is not None:
            raise UsageError("--thrift is for a Conductor; leave it out.")
        yield open_baseline(options.planner, pool.profiles, seed=seed)
    elif not any(served):
        yield open_conductor(options.conductor or "conductor", thrift=options.thrift, option="--thrift")
    elif options.thrift is not None:
        raise UsageError("--thrift is for a Conductor of Podium's own; leave it out, or --conductor-url.")
    elif options.conductor is not None:
        raise UsageError("--conductor names a folder, --conductor-url a server; give one of them.")
    else:
        policy = _served(options)
        try:
            yield served_conductor(policy)
        finally:
            await policy.close()


def _served(options: PlannerOptions) -> ServedPolicy:
    if options.conductor_url is None or options.conductor_model is None:
        raise UsageError("A served Conductor needs both --conductor-url and --conductor-model.")
    return served_policy(
        options.conductor_url,
        options.conductor_model,
        key_env=options.conductor_key_env,
        price=options.conductor_price,
        option="--conductor-key-env",
    )
