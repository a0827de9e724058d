"""Opens the planner that settings name: a Conductor, local or served, or a baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.baselines import open_baseline
from podium.conductor.conducting import open_conductor, served_conductor, served_policy
from podium.conductor.served_policy import ServedPolicy
from podium.errors import UsageError
from podium.planner import Planner
from podium.workers.planner_settings import PlannerSettings
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class OpenedPlanner:
    """A planner, and what it holds."""

    planner: Planner
    policy: ServedPolicy | None = None
    """A served Conductor's; None: the planner holds no connections."""

    async def close(self) -> None:
        """Give back connections. Calling twice is fine; a later plan opens new ones."""
        if self.policy is not None:
            await self.policy.close()


def open_planner(
    settings: PlannerSettings, pool: Pool, *, seed: str, called: Callable[[str], str] = str
) -> OpenedPlanner:
    """The planner of `settings`, for the workers of `pool`; it is the caller's to close.

    Args:
        seed: names the randomness of a planner that plans at random.
        called: what whoever asks calls a key of the settings, for messages.

    Raises:
        UsageError: settings that exclude each other, or name what there is not.
    """
    fault = settings.fault(called)
    if fault is not None:
        raise UsageError(fault)
    if settings.planner != "conductor":
        return OpenedPlanner(open_baseline(settings.planner, pool.written, seed=seed))
    if settings.conductor_url is None or settings.conductor_model is None:
        return OpenedPlanner(
            open_conductor(settings.conductor or "conductor", thrift=settings.thrift, option=called("thrift"))
        )
    policy = served_policy(
        settings.conductor_url,
        settings.conductor_model,
        key_env=settings.conductor_key_env,
        price=settings.conductor_price,
        option=called("conductor_key_env"),
    )
    return OpenedPlanner(served_conductor(policy), policy)
