"""The service behind all routes: it has the team, its planners, the store and the keys.

A route turns HTTP into a `ChatRequest`. The service, which knows no HTTP, finds the runner for it, and checks what its
caller may use before anything runs. A `PreparedQuestion` answers the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from podium.errors import StoreError
from podium.executor import ExecutionSettings
from podium.planner import Planner
from podium.planners import Single
from podium.server.api_errors import invalid
from podium.server.approval import ApprovedPlan, WaitingPlans
from podium.server.keys import Caller, Keys
from podium.server.live import EventLogs
from podium.server.plan_prices import PlanPrices
from podium.server.planner_catalogue import PlannerCatalogue
from podium.server.prompt_caches import CachedConversations
from podium.server.provider_state import ProviderStates
from podium.server.requests import ChatRequest
from podium.server.worker_selection import eligible_workers, worker_and_fallbacks
from podium.team import Event, Runner
from podium.team.affinity import StickyWorkerPlanner
from podium.team.opened_planner import OpenedPlanner, first_model
from podium.team.team import Team
from podium.trace import Trace
from podium.types import Budget, copy_without_validation
from podium.workers.pool import Pool

if TYPE_CHECKING:
    from podium.server.process_peers import ProcessPeers
    from podium.store.async_store import AsyncTraceStore

_LOG = logging.getLogger("podium.server")

ObserverFactory = Callable[[str, ChatRequest, Caller], Callable[[Event], None]]
"""A function that is called when a question begins, with its trace id, request and caller. It returns the observer of
the question's events."""


class Service:
    """The parts of the server that all routes share.

    Args:
        team, store, keys: the team, the store of traces, and the API keys. The code that opened them closes them.
        observers: further observers of every question.
        peers: the other processes that serve the same address. None if there are none.
    """

    def __init__(
        self,
        team: Team,
        *,
        store: AsyncTraceStore,
        keys: Keys,
        observers: Sequence[ObserverFactory] = (),
        peers: ProcessPeers | None = None,
    ) -> None:
        self.team = team
        self.pool = team.pool
        self.dispatcher = team.runner.dispatcher
        self.settings = team.settings
        self._most = team.settings.budget.question_budget(1)
        self.store = store
        self.keys = keys
        self.live = EventLogs(peers)
        self.observers = list(observers)
        self.peers = peers
        self.planners = PlannerCatalogue(team, store)
        self.plans = WaitingPlans(store)
        self.prices = PlanPrices(store)
        self.conversations = CachedConversations(team.pool, 60 * self.settings.serve.prompt_cache_minutes)
        self.provider_states = ProviderStates(store)
        self.parse_lock = asyncio.Lock()
        """A lock for parsing a long request body in a thread."""

    async def close(self) -> None:
        """Close what this service opened itself. Calling twice is fine."""
        self.live.close()
        await self.planners.close()

    async def find_plan(self, request: ChatRequest, caller: Caller) -> ApprovedPlan | None:
        """The waiting plan that `request` approves. None if the request names none.

        Raises:
            APIError: the plan does not wait for this caller, or the request does not fit the plan.
        """
        if request.plan_id is None:
            return None
        if request.worker is not None:
            problem = "One worker answers this request without a plan: leave podium.plan_id out."
            raise invalid(problem, "podium.plan_id")
        return ApprovedPlan.of(await self.plans.find(request.plan_id, caller), request)

    async def open_runner(
        self, request: ChatRequest, caller: Caller, approved: ApprovedPlan | None = None
    ) -> Runner:
        """The runner for `request`, with the planner, the workers that the request may use, and the budget.

        Args:
            approved: the plan that the request runs.

        Raises:
            APIError: the caller may not do this.
            UsageError: the question cannot be answered as requested.
        """
        runner, budget = self.team.runner, _limited_by(request.budget, self._most)
        spend_limit = self.keys.spend_limit(caller)
        if spend_limit is not None:
            runner = replace(runner, dispatcher=self.dispatcher.with_spend_limits(spend_limit))
        if request.worker is not None:
            return replace(
                runner,
                planner=Single(request.worker),
                pool=worker_and_fallbacks(self.pool, caller, request),
                budget=_for_one_round(budget),
                max_steps=1,
                settings=ExecutionSettings(layout="plain", messages=request.messages),
                plan_fallback=None,
            )
        pool = eligible_workers(self.pool, caller, request, self.planners)
        if approved is not None:
            planned = approved.planned
            pool = pool.subset([number for number, name in enumerate(pool.names) if name in approved.names])
            return replace(
                runner,
                planner=approved.planner(pool),
                pool=pool,
                budget=_for_one_round(_limited_by(budget, planned.budget)),
                max_steps=planned.max_steps,
                settings=replace(runner.settings, early_stop=planned.early_stop),
                plan_fallback=None,
            )
        configured = await self.planners.get(request.planner, request.planner_param)
        fallback = configured.fallback
        if fallback is not None and fallback not in pool.names:
            first = first_model(pool)
            fallback = None if first is None else first.profile.name
        return copy_without_validation(
            runner,
            planner=self._sticky_planner(configured, pool, request, caller),
            pool=pool,
            budget=budget,
            max_steps=request.max_steps,
            settings=replace(runner.settings, early_stop=request.early_stop),
            plan_fallback=fallback,
        )

    def _sticky_planner(
        self, opened: OpenedPlanner, pool: Pool, request: ChatRequest, caller: Caller
    ) -> Planner:
        """The planner. If a Conductor plans and the question continues a conversation, a planner that may keep its
        worker."""
        planner = opened.planner
        past = (
            self.conversations.past_turn(request.question, caller) if opened.conductor is not None else None
        )
        if past is None or past.worker not in pool.names:
            return planner
        closed = self.dispatcher.channel(pool.named(past.worker)).breaker.state == "closed"
        return StickyWorkerPlanner(planner, past, self.settings.serve.right_answer_usd) if closed else planner

    def keep(self, trace: Trace, caller: Caller) -> None:
        """Store the trace of a question."""
        self.provider_states.record(trace, caller)
        try:
            self.store.add(trace)
        except StoreError as error:
            # The answer is paid for and its caller is waiting, so a failing store must not lose it.
            _LOG.error("Trace %s is not kept: %s", trace.id, error)


def _for_one_round(budget: Budget) -> Budget:
    return budget.model_copy(update={"rounds": 1})


def _limited_by(budget: Budget, most: Budget) -> Budget:
    """`budget`, with each limit at most the limit in `most`. The rounds do not change."""
    if most == Budget():
        return budget
    limits = {}
    for name in ("calls", "tokens", "usd", "seconds"):
        values = [value for value in (getattr(budget, name), getattr(most, name)) if value is not None]
        limits[name] = min(values, default=None)
    return budget.model_copy(update=limits)
