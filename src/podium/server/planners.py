"""The planners that requests may name: the configured one, and those that need nothing of this machine's files.

Opened when first asked for, once; closed with the server.
"""

from __future__ import annotations

import asyncio

from podium.baselines import VOTE
from podium.errors import ConfigError
from podium.orchestrator.planning import OpenedPlanner, open_planner
from podium.planner import Planner
from podium.server.complaints import missing
from podium.workers.planner_settings import PlannerSettings
from podium.workers.pool import Pool

_CONDUCTORS = ("conductor", "warmstart")
_LONGEST = 2
"""Digits of a number of samples."""
_MOST_SAMPLES = 32
_MOST_OPEN = 256


class Planners:
    """Planners by the name that requests use.

    Args:
        pool: the workers that baselines may name.
        settings: the planner that requests get that name none.
    """

    def __init__(self, pool: Pool, settings: PlannerSettings) -> None:
        self._pool = pool
        self._settings = settings
        self._opened: dict[str, OpenedPlanner] = {}
        self._opening = asyncio.Lock()

    @property
    def configured(self) -> str:
        """The name of the configured one."""
        return self._settings.planner

    @property
    def names(self) -> tuple[str, ...]:
        """Those that are offered by name; forms with a worker in them are known besides, see `named`."""
        return tuple(dict.fromkeys((self.configured, *_CONDUCTORS, "random")))

    @property
    def forms(self) -> tuple[str, ...]:
        """All that a request may name, baselines of one worker as forms."""
        voting = ("self-consistency:WORKER:SAMPLES",) if "vote" in self._pool.names else ()
        return (*self.names, "single:WORKER", *voting)

    def worker(self, name: str) -> str | None:
        """The worker that the planner called `name` is about, if it is about one; whether there is one is not asked."""
        form, _, rest = name.partition(":")
        if name == self.configured or form not in ("single", "self-consistency"):
            return None
        return rest if form == "single" else rest.rpartition(":")[0]

    def needs(self, name: str | None) -> tuple[str, ...]:
        """The workers without which the planner called `name` cannot plan; None: the configured one."""
        form, _, rest = (self.configured if name is None else name).partition(":")
        if form == "single":
            return (rest,)
        return (rest.rpartition(":")[0], VOTE) if form == "self-consistency" else ()

    async def named(self, name: str | None, param: str | None = None) -> Planner:
        """The planner called `name`; None: the configured one.

        Raises:
            Complaint: 404, there is none.
            UsageError: it cannot be opened here.
        """
        name = self.configured if name is None else name
        opened = self._opened.get(name)
        if opened is None:
            async with self._opening:
                opened = self._opened.get(name) or await self._open(name, param)
        return opened.planner

    async def _open(self, name: str, param: str | None) -> OpenedPlanner:
        try:
            opened = await asyncio.to_thread(
                open_planner, self._spelled(name, param), self._pool, seed="served"
            )
        except ConfigError as error:
            if name == self.configured:
                raise
            raise missing(str(error), param, code="planner_not_found") from None
        if len(self._opened) < _MOST_OPEN:  # Each holds a few values; names are the callers' to make up.
            self._opened[name] = opened
        return opened

    def _spelled(self, name: str, param: str | None) -> PlannerSettings:
        """What `name` stands for. Forms with a file in them are for whoever starts the server alone."""
        if name == self.configured:
            return self._settings
        if name in _CONDUCTORS:
            return PlannerSettings(conductor=name)
        form, _, rest = name.partition(":")
        samples = rest.rpartition(":")[2]
        known = form == "single" or name == "random"
        if form == "self-consistency":
            known = (
                samples.isascii()
                and samples.isdecimal()
                and len(samples) <= _LONGEST
                and 1 <= int(samples) <= _MOST_SAMPLES
            )
        if not known:
            raise missing(
                f"There is no planner {name[:100]!r} to ask for; there are {', '.join(self.forms)} "
                f"(at most {_MOST_SAMPLES} samples).",
                param,
                code="planner_not_found",
            )
        return PlannerSettings(planner=name)

    async def close(self) -> None:
        """Give back connections. Calling twice is fine."""
        for opened in self._opened.values():
            await opened.close()
