"""Opens the planner that the options name: a Conductor, local or served, or a baseline."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podium.baselines import open_baseline
from podium.cli.options import PlannerOptions
from podium.conductor import Checkpoint, Conductor, PromptSettings, Sampling, open_policy
from podium.conductor.served_policy import ServedPolicy
from podium.errors import UsageError
from podium.planner import Planner
from podium.types import Price
from podium.workers.build import read_key
from podium.workers.pool import Pool

_THINKING_ALOUD = Sampling(max_tokens=8192)
"""For instruct models: they may reason at length before they write the three lists."""


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
        yield _local(options.conductor or "conductor", options.thrift)
    elif options.thrift is not None:
        raise UsageError("--thrift is for a Conductor of Podium's own; leave it out, or --conductor-url.")
    elif options.conductor is not None:
        raise UsageError("--conductor names a folder, --conductor-url a server; give one of them.")
    else:
        policy = _served(options)
        try:
            yield Conductor(
                policy,
                PromptSettings(),
                second_try=True,
                sampling=_THINKING_ALOUD,
                name=f"conductor:{policy.name}",
            )
        finally:
            await policy.close()


def _local(source: str, thrift: int | None) -> Conductor:
    checkpoint = Checkpoint.read(source)
    full = checkpoint.prompt.style == "full"
    prompt = checkpoint.prompt
    if thrift is not None:
        if not 0 <= thrift < prompt.levels:
            known = f"levels 0 to {prompt.levels - 1}" if prompt.levels else "no levels of thrift"
            raise UsageError(f"--thrift {thrift}: {checkpoint.path} knows {known}.")
        prompt = prompt.model_copy(update={"thrift": thrift})
    return Conductor(
        open_policy(checkpoint),
        prompt,
        # A small policy that is asked in brief writes the same again.
        second_try=full,
        sampling=_THINKING_ALOUD if full else None,
        name="conductor" if source == "conductor" else f"conductor:{checkpoint.name}",
    )


def _served(options: PlannerOptions) -> ServedPolicy:
    from podium.workers.openai import ChatClient  # noqa: PLC0415 - loads the HTTP client

    if options.conductor_url is None or options.conductor_model is None:
        raise UsageError("A served Conductor needs both --conductor-url and --conductor-model.")
    variable = options.conductor_key_env
    key = None if variable is None else read_key(variable, "--conductor-key-env")
    price = options.conductor_price
    return ServedPolicy(
        ChatClient(options.conductor_url, key),
        options.conductor_model,
        price=None if price is None else Price(input=price[0], output=price[1]),
    )
