"""The planners that requests may name: the configured planner, and planners that need no file on this machine.

A planner is opened when a request first names it, and closed with the server.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time

from podium.errors import StoreError, UsageError
from podium.planners import PlannerSpec, find_baseline, known_baselines
from podium.planners.planner import OnlinePlanner, Planner
from podium.server.api_errors import not_found
from podium.store import TraceStore
from podium.team.health_check import CheckResult, check_planner
from podium.team.opened_planner import OpenedPlanner, open_planner
from podium.team.settings import PlannerChoice, TeamSettings
from podium.team.team import Team
from podium.workflow import PlanError

_LOG = logging.getLogger("podium.server")
_SAMPLES = re.compile("[1-9]|[12][0-9]|3[0-2]", re.ASCII)
"""Matches the numbers of samples that a request may name."""
_MAX_SAMPLES = 32
_MAX_OPEN = 256
_FRESH_S = 5.0
"""Seconds for which outcomes that were read are used again, unless this server takes a new one."""
_CHECK_AGAIN_S = 30.0
"""Seconds between two checks of a planner that did not answer."""


class PlannerCatalogue:
    """Planners by the names that requests use. The team's planner answers requests that name none, and baselines may
    name its workers. Planners that learn find judged answers in the store. If it is None, they learn nothing."""

    def __init__(self, team: Team, store: TraceStore | None = None) -> None:
        self._team = team
        self._store = store
        self._learned_at: dict[str, float] = {}
        self._learning = asyncio.Lock()
        self._baselines = known_baselines()
        self.last_error: str | None = None
        """Why the configured planner did not answer the last time. None if it answered."""
        self._checked_at = float("-inf")
        self._opened: dict[str, OpenedPlanner] = {self.configured: team.opened_planner}
        self._opening = asyncio.Lock()

    @property
    def configured(self) -> str:
        """The name of the configured planner."""
        return self._team.settings.plan.planner

    @property
    def names(self) -> tuple[str, ...]:
        """The names of planners to list. `get` also knows names that contain the name of a worker."""
        return tuple(dict.fromkeys((self.configured, *(form for form in self._forms if ":" not in form))))

    @property
    def forms(self) -> tuple[str, ...]:
        """All planners that a request may name. Planners with an argument are given as forms like single:WORKER."""
        return (*self.names, *(form for form in self._forms if ":" in form))

    def named_worker(self, name: str) -> str | None:
        """The worker in a planner's name like single:WORKER, whether or not the pool has it. None if the name has no
        such form."""
        return None if name == self.configured else next(iter(self.required_workers(name)), None)

    def required_workers(self, name: str | None) -> tuple[str, ...]:
        """The workers without which a planner cannot plan. Default: the configured planner."""
        match = find_baseline(self.configured if name is None else name)
        if match is None:
            return ()
        baseline, argument = match
        return baseline.needs(argument)

    async def get(self, name: str | None, param: str | None = None) -> OpenedPlanner:
        """Open a planner, or return it if it is open. Default: the configured planner. A planner that learns first
        learns the latest outcomes.

        Raises:
            APIError: 404, there is no such planner.
        """
        name = self.configured if name is None else name
        opened = self._opened.get(name)
        if opened is None:
            async with self._opening:
                opened = self._opened.get(name) or await self._open(name, param)
        await self._learn(opened.planner)
        return opened

    async def check(self) -> CheckResult:
        """Ask the configured planner for one plan, paid like any plan, and remember whether it answered. A plan that a
        budget refused says nothing about the planner."""
        self._checked_at = time.monotonic()
        result = await check_planner(self._team)
        if result.error != "budget_exceeded":
            self._remember(None if result.answered else result.text)
        return result

    @property
    def fallback(self) -> str | None:
        """The worker that answers when the configured planner fails. If it is None, such questions fail."""
        return self._team.opened_planner.fallback

    @property
    def check_is_due(self) -> bool:
        """Whether the configured planner has failed and has not been checked again for a while."""
        return self.last_error is not None and time.monotonic() - self._checked_at > _CHECK_AGAIN_S

    def record_plan(self, name: str, error: PlanError | None) -> None:
        """Remember whether the configured planner answered, after a question that it planned. A plan that the
        question's budget refused or cut short says nothing about the planner."""
        stopped = error is not None and error.kind in ("budget_exceeded", "time_is_up")
        if self._team.planner.name != name or stopped:
            return
        self._remember(error.message if error is not None and error.kind == "planner_failed" else None)

    def _remember(self, last_error: str | None) -> None:
        if last_error is not None and self.last_error is None:
            instead = "fail" if self.fallback is None else f"go to {self.fallback!r} alone"
            _LOG.warning("The Conductor does not answer, so questions %s: %s", instead, last_error)
        self.last_error = last_error

    async def _open(self, name: str, param: str | None) -> OpenedPlanner:
        try:
            opened = await asyncio.to_thread(
                open_planner,
                self._settings_for(name, param),
                self._team.pool,
                seed="served",
            )
        except UsageError as error:
            raise not_found(str(error), param, code="planner_not_found") from None
        # Callers can make up names, so the number of open planners has a limit.
        if len(self._opened) < _MAX_OPEN:
            self._opened[name] = opened
        return opened

    def _settings_for(self, name: str, param: str | None) -> TeamSettings:
        """The settings of a planner that a request may name. Forms with a file path are refused."""
        match = find_baseline(name)
        if match is None or not self._is_offered(*match):
            raise not_found(
                f"There is no planner {name[:100]!r}; there are {', '.join(self.forms)} "
                f"(at most {_MAX_SAMPLES} samples).",
                param,
                code="planner_not_found",
            )
        return self._team.settings.with_planner(PlannerChoice(planner=name))

    @property
    def _forms(self) -> tuple[str, ...]:
        """The forms of the baselines that this pool can run, whatever worker a request names."""
        return tuple(
            baseline.syntax
            for baseline in self._baselines.values()
            if baseline.for_clients
            # With an empty argument, a planner needs only what it always needs.
            and set(self._team.pool.names).issuperset(baseline.needs(""))
        )

    def _is_offered(self, baseline: PlannerSpec, argument: str) -> bool:
        if not baseline.for_clients:
            return False
        samples = argument.rpartition(":")[2]
        return not baseline.syntax.endswith(":SAMPLES") or _SAMPLES.fullmatch(samples) is not None

    async def close(self) -> None:
        """Close the connections. Calling twice is fine."""
        for opened in self._opened.values():
            await opened.close()

    def mark_outcomes_stale(self) -> None:
        """Let the next plan read the outcomes again, since there is a new outcome."""
        self._learned_at.clear()

    async def _learn(self, planner: Planner) -> None:
        """Let a planner that learns while it serves learn how its answers were judged.

        It forgets everything, and learns from its latest judged traces in the store, in the order of the questions. So
        its knowledge survives a restart, all servers of one store learn the same, and if an outcome is changed, removed
        or deleted with its trace, its present state counts. While the store cannot be read, it keeps what it knows.
        """
        if self._store is None or not isinstance(planner, OnlinePlanner):
            return
        async with self._learning:
            now = time.monotonic()
            if now - self._learned_at.get(planner.name, float("-inf")) <= _FRESH_S:
                return
            self._learned_at[planner.name] = now
            try:
                traces = await self._store.to_thread(
                    self._store.with_outcomes, planner.name, planner.replayed_outcomes
                )
            except StoreError as error:
                _LOG.error("The planner %s plans without newer outcomes: %s", planner.name, error)
                return
            planner.forget()
            for trace in traces:
                if trace.outcome is not None and trace.outcome.right is not None:
                    planner.learn(trace, float(trace.outcome.right))
