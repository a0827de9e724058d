"""The service behind all routes: it has the team, its planners, the store and the keys.

A route turns HTTP into a `ChatRequest`. The service, which knows no HTTP, finds the runner for it, and checks what its
caller may use before anything runs. A `PreparedQuestion` answers the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.conductor.checkpoint import PlanLimits
from podium.errors import StoreError
from podium.executor import ExecutionSettings
from podium.planners import Single
from podium.planners.planner import Planner
from podium.server.answer_state import ProviderStates
from podium.server.api_errors import invalid
from podium.server.approval import ApprovedPlan, WaitingPlans
from podium.server.cached_conversations import CachedConversations
from podium.server.event_logs import EventLogs
from podium.server.keys import Caller, Keys
from podium.server.planner_catalogue import PlannerCatalogue
from podium.server.recent_traces import RecentTraces
from podium.server.requests import NO_LIMITS, BudgetLimits, ChatRequest, PodiumOptions
from podium.server.worker_selection import eligible_workers, worker_and_fallbacks
from podium.team import Runner
from podium.team.opened_planner import OpenedPlanner, first_model
from podium.team.sticky_worker import StickyWorkerPlanner
from podium.team.team import Team
from podium.trace import Trace
from podium.types import Budget, fast_replace
from podium.workers.pool import Pool

if TYPE_CHECKING:
    from podium.server.process_peers import ProcessPeers
    from podium.store import TraceStore

_LOG = logging.getLogger("podium.server")

Observer = Callable[[ChatRequest, Trace], None]
"""A function that is called when a question has ended."""
_MAX_ROUNDS, _MAX_STEPS = 5, 20
"""The most rounds and steps that a request may ask for. If the team's own are more, those."""


class Service:
    """The parts of the server that all routes share.

    Args:
        team, store, keys: the code that opened them closes them.
        peers: the other processes that serve the same address. None if there are none.
    """

    def __init__(
        self,
        team: Team,
        *,
        store: TraceStore,
        keys: Keys,
        observers: Sequence[Observer] = (),
        peers: ProcessPeers | None = None,
    ) -> None:
        self.team = team
        self.pool = team.pool
        self.call_state = team.runner.call_state
        self.settings = team.settings
        self._limits = _limits(team.settings.budget.question_budget(1))
        self._max_steps = team.settings.plan.max_steps or PlanLimits().max_steps
        self.store = store
        self.keys = keys
        self.event_logs = EventLogs(peers)
        self.observers = list(observers)
        self.peers = peers
        self.planners = PlannerCatalogue(team, store)
        self.plans = WaitingPlans(store)
        self.recent_traces = RecentTraces(store)
        self.cached_conversations = CachedConversations(
            team.pool, 60 * self.settings.serve.prompt_cache_minutes
        )
        self.provider_states = ProviderStates(store)
        self.parse_lock = asyncio.Lock()
        """A lock for parsing a long request body in a thread."""

    async def close(self) -> None:
        """Close what this service opened itself. Calling twice is fine."""
        self.event_logs.close()
        await self.planners.close()

    async def find_approved_plan(self, request: ChatRequest, caller: Caller) -> ApprovedPlan | None:
        """The waiting plan that `request` approves. None if the request names none.

        Raises:
            APIError: the plan does not wait for this caller, or the request does not fit the plan.
        """
        plan_id = request.options.plan_id
        if plan_id is None:
            if request.options.workflow is not None:
                raise invalid(
                    "podium.workflow edits a plan: name the plan by podium.plan_id, which a dry run gives.",
                    "podium.workflow",
                )
            return None
        if request.worker is not None:
            problem = "One worker answers this request without a plan: leave podium.plan_id out."
            raise invalid(problem, "podium.plan_id")
        return ApprovedPlan.of(await self.plans.find(plan_id, caller), request)

    async def open_runner(
        self, request: ChatRequest, caller: Caller, approved: ApprovedPlan | None = None
    ) -> Runner:
        """The runner for `request`, with its approved plan or a planner, the workers that it may use, and the budget.

        Raises:
            APIError: the caller may not do this.
            UsageError: the question cannot be answered as requested.
        """
        runner, options = self.team.runner, request.options
        budget, max_steps = self._budget(options), self._max_steps_of(options)
        spend_limit = self.keys.spend_limit(caller)
        if spend_limit is not None:
            runner = runner.with_spend_limits(spend_limit)
        if request.worker is not None:
            pool = worker_and_fallbacks(self.pool, caller, request)
            return _direct_runner(runner, pool, request.worker, budget)
        pool = eligible_workers(self.pool, caller, request, self.planners)
        if approved is not None:
            return _approved_runner(runner, pool, approved, budget)
        configured = await self.planners.get(request.planner, "model")
        fallback = configured.fallback
        if fallback is not None and fallback not in pool.names:
            first = first_model(pool)
            fallback = None if first is None else first.profile.name
        settings = runner.settings
        if options.early_stop is not None:
            settings = replace(settings, early_stop=options.early_stop)
        return fast_replace(
            runner,
            planner=self._sticky_planner(configured, pool, request, caller),
            pool=pool,
            budget=budget,
            max_steps=max_steps,
            settings=settings,
            plan_fallback=fallback,
        )

    def _budget(self, options: PodiumOptions) -> Budget:
        """The limits that the options ask for, each at most the server's own.

        Raises:
            APIError: there are more rounds than the server allows.
        """
        limits, own = options.budget or NO_LIMITS, self.settings.budget.rounds
        given = [rounds for rounds in (options.max_rounds, limits.rounds) if rounds is not None]
        rounds, most = min(given, default=own), max(_MAX_ROUNDS, own)
        if rounds > most:
            where = "podium.max_rounds" if limits.rounds is None else "podium.budget.rounds"
            raise invalid(f"{where}: this server gives at most {most} rounds.", where)
        return Budget(**_lower(_limits(limits), self._limits), rounds=rounds)

    def _max_steps_of(self, options: PodiumOptions) -> int:
        """The most steps of a plan. If the options do not say, the server's setting.

        Raises:
            APIError: there are more steps than the server allows.
        """
        own = self._max_steps
        steps = own if options.max_steps is None else options.max_steps
        if steps > (most := max(_MAX_STEPS, own)):
            problem = f"podium.max_steps: this server lets a plan have at most {most}."
            raise invalid(problem, "podium.max_steps")
        return steps

    def _sticky_planner(
        self, opened: OpenedPlanner, pool: Pool, request: ChatRequest, caller: Caller
    ) -> Planner:
        """The planner. If a Conductor plans and the question continues a conversation, a planner that may keep its
        worker."""
        if opened.conductor is None:
            return opened.planner
        past = self.cached_conversations.past_turn(request.question, caller)
        if past is None or past.worker not in pool.names:
            return opened.planner
        closed = self.call_state.channel(pool.named(past.worker)).breaker.state == "closed"
        return StickyWorkerPlanner(opened.planner, past) if closed else opened.planner

    def keep(self, trace: Trace, caller: Caller) -> None:
        """Store the trace of a question."""
        self.provider_states.record(trace, caller)
        try:
            self.store.add(trace)
        except StoreError as error:
            # The answer is paid for and its caller is waiting, so a failing store must not lose it.
            _LOG.error("Trace %s is not kept: %s", trace.id, error)


def _direct_runner(runner: Runner, pool: Pool, worker: str, budget: Budget) -> Runner:
    """The runner that calls one worker, the first of `pool`, with the caller's messages."""
    settings = ExecutionSettings(layout="plain")
    return replace(runner.for_one_plan(Single(worker), pool, budget), max_steps=1, settings=settings)


def _approved_runner(runner: Runner, pool: Pool, approved: ApprovedPlan, budget: Budget) -> Runner:
    """The runner of an approved plan, with those workers of `pool` that the plan was made for."""
    planned = approved.planned
    pool = pool.subset([number for number, name in enumerate(pool.names) if name in approved.worker_names])
    budget = Budget(**_lower(_limits(budget), _limits(planned.budget)))
    settings = replace(runner.settings, early_stop=planned.early_stop)
    runner = runner.for_one_plan(approved.planner(pool), pool, budget)
    return replace(runner, max_steps=planned.max_steps, settings=settings)


def _limits(budget: Budget | BudgetLimits) -> dict[str, Any]:
    """The limits that a budget sets, without the rounds."""
    return budget.model_dump(exclude={"rounds"}, exclude_none=True)


def _lower(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The lower of each two limits."""
    return {**one, **other, **{name: min(one[name], other[name]) for name in one.keys() & other.keys()}}
