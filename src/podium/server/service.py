"""What every request needs, made once: the pool, the planners, the store, the keys, and how a question is answered.

Knows a request as `ChatRequest`; how it was written on the wire is its route's. Decides who may be asked what, before
anything runs. Does not print, and answers no HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from podium.errors import StoreError
from podium.executor import Dispatcher, ExecutionSettings
from podium.executor.estimate import PlanEstimate, estimate
from podium.executor.ledger import SpendLimit
from podium.orchestrator import Event, Orchestrator, PlanReady, QuestionEnded
from podium.orchestrator.planning import first_model
from podium.planner import Plan, PlanRequest
from podium.server.keys import NOBODY, Caller
from podium.server.live import Live
from podium.server.offer import offer, reach
from podium.server.planners import Planners
from podium.server.settings import ServeSettings
from podium.server.straight import Straight
from podium.trace import Trace
from podium.types import Budget, Message, Question
from podium.workers.pool import Pool
from podium.workflow import Workflow

if TYPE_CHECKING:
    from podium.server.keys import Keys
    from podium.trace.async_store import AsyncTraceStore

_LOG = logging.getLogger("podium.server")
_RESPONSE_TOKENS = 200
"""That a response is taken to have, where nothing was run."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request, understood."""

    question: Question
    model: str = "podium"
    """As the request names it."""
    budget: Budget = Budget()
    allow: tuple[str, ...] | None = None
    """Workers that may be asked; None: all."""
    deny: tuple[str, ...] = ()
    planner: str | None = None
    """None: the configured one."""
    worker: str | None = None
    """Who is asked straight, without a plan; None: the planner decides."""
    past: tuple[Message, ...] | None = None
    """What that worker is shown in place of the question's history: it goes on where it called its caller's tools."""
    max_steps: int = 5
    early_stop: bool = False
    """Whether votes stop once they are certain."""
    dry_run: bool = False
    seed: str = "0"
    metadata: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    keep: bool = True
    """Whether its trace is kept."""

    @property
    def planner_param(self) -> str:
        """The field that names the planner."""
        return "model" if self.model.startswith("podium/") else "podium.planner"


Watch = Callable[[str, ChatRequest, Caller], Callable[[Event], None]]
"""Told of each question as it begins (the id of its trace, what was asked, by whom): gives its observer."""


class Service:
    """Answers what is asked, for all routes.

    Args:
        pool, dispatcher, store, keys, live: stay the caller's to close.
        store: where traces are kept; None: nowhere.
        keys: who may ask; None: whoever can reach the server.
        live: told of every question while it runs; None: one of its own.
        watches: further observers of every question.
    """

    def __init__(
        self,
        pool: Pool,
        dispatcher: Dispatcher,
        *,
        store: AsyncTraceStore | None = None,
        keys: Keys | None = None,
        live: Live | None = None,
        settings: ServeSettings | None = None,
        watches: Sequence[Watch] = (),
    ) -> None:
        self.pool = pool
        self.dispatcher = dispatcher
        self.store = store
        self.keys = keys
        self.live = live or Live()
        self.settings = settings or ServeSettings()
        self.watches = list(watches)
        self.planners = Planners(pool, self.settings.planner, dispatcher)
        self.reading = asyncio.Lock()
        """Held by the request whose long body is checked."""
        self.running: dict[str, asyncio.Task[object]] = {}
        """The tasks that answer a question now, by the id of its trace."""

    @property
    def needs_keys(self) -> bool:
        """Whether nobody comes in without a key."""
        return self.keys is not None and self.keys.needed

    async def admitted(self, authorization: str | None) -> Caller:
        """Who asks, by the header of that name, and that they may ask once more now.

        Raises:
            APIError: 401 or 429.
        """
        if self.keys is None:
            return NOBODY
        caller = await self.keys.caller(authorization)
        await self.keys.admit(caller)
        return caller

    async def answer(
        self,
        asked: ChatRequest,
        caller: Caller,
        *,
        trace_id: str,
        by: Orchestrator | None = None,
        sample: int = 0,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        """The trace of `asked`, which is kept, however it ends.

        Args:
            by: who answers, as `orchestrator` gave it for these; None: it is asked for here.
            sample, on_event, streams: as `Orchestrator.answer`.

        Raises:
            APIError: it may not be asked so; nothing was run.
            UsageError: it cannot be asked so.
            asyncio.CancelledError: the caller went away; the trace is kept as cancelled.
        """
        orchestrator = by or await self.orchestrator(asked, caller)
        observe = self._observer(asked, caller, orchestrator, trace_id, on_event)
        task = asyncio.current_task()
        assert task is not None
        self.running[trace_id] = task
        try:
            return await orchestrator.answer(
                asked.question,
                seed=asked.seed,
                sample=sample,
                trace_id=trace_id,
                on_event=observe,
                streams=streams,
            )
        finally:
            del self.running[trace_id]
            self.live.end(trace_id)

    async def plan(self, asked: ChatRequest, by: Orchestrator) -> tuple[Plan, PlanEstimate | None]:
        """What would be done and what it would cost; no worker is called, and without a plan there is no estimate.

        Raises:
            UsageError: it cannot be asked so.
            WorkerError: a served planner did not answer.
        """
        question = asked.question
        profiles = by.pool.profiles_for(question.text)
        request = PlanRequest(
            question,
            profiles,
            max_steps=by.max_steps,
            rounds=by.budget.rounds,
            seed=f"{asked.seed}/0/plan",
        )
        plan = await by.planner.plan(request)
        for account in by.accounts:
            account.settle(0.0, plan.cost_usd)
        if not isinstance(plan.decision, Workflow):
            return plan, None
        return plan, estimate(plan.decision, by.pool, question, response_tokens=_RESPONSE_TOKENS)

    async def close(self) -> None:
        """Give back what this service opened itself. Calling twice is fine."""
        self.live.close()
        await self.planners.close()

    async def orchestrator(self, asked: ChatRequest, caller: Caller) -> Orchestrator:
        """Who answers `asked`: refusals are made here.

        Raises:
            APIError, UsageError: as `answer`.
        """
        spend_limit = None if self.keys is None else self.keys.account(caller)
        accounts: tuple[SpendLimit, ...] = () if spend_limit is None else (spend_limit,)
        budget = _within(asked.budget, self.settings.budget)
        if asked.worker is not None:
            return Orchestrator(
                Straight(asked.worker),
                reach(self.pool, caller, asked),
                budget=budget.model_copy(update={"rounds": 1}),
                max_steps=1,
                settings=ExecutionSettings(context="plain", past=asked.past),
                dispatcher=self.dispatcher,
                accounts=accounts,
            )
        opened = await self.planners.named(asked.planner, asked.planner_param)
        pool, fallback = offer(self.pool, caller, asked, self.planners), opened.fallback
        if fallback is not None and fallback not in pool.names:
            first = first_model(pool)
            fallback = None if first is None else first.profile.name
        return Orchestrator(
            opened.planner,
            pool,
            budget=budget,
            max_steps=min(asked.max_steps, self.settings.most_steps),
            settings=ExecutionSettings(early_stop=asked.early_stop),
            dispatcher=self.dispatcher,
            accounts=accounts,
            plan_fallback=fallback,
        )

    def _keep(self, trace: Trace) -> None:
        assert self.store is not None
        try:
            self.store.add(trace)
        except StoreError as error:  # The answer is paid for, and its caller waits for it.
            _LOG.error("Trace %s is not kept: %s", trace.id, error)

    def _observer(
        self,
        asked: ChatRequest,
        caller: Caller,
        by: Orchestrator,
        trace_id: str,
        on_event: Callable[[Event], None] | None,
    ) -> Callable[[Event], None]:
        """Tells everybody who wants to know, and has the trace kept with what only the server knows of it."""
        live = self.live.begin(
            trace_id,
            caller.name,
            question=asked.question.text,
            planner=by.planner.name,
            workers=by.pool.names,
        )
        told = [live, *(watch(trace_id, asked, caller) for watch in self.watches)]
        if on_event is not None:
            told.append(on_event)

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                named = {"owner": caller.name, "user": asked.user, "metadata": asked.metadata}
                trace = event.trace.model_copy(update=named)
                if self.store is not None and asked.keep:
                    self._keep(trace)
                event = replace(event, trace=trace)
            elif isinstance(event, PlanReady):
                self.planners.planned(by.planner.name, event.error)
            for tell in told:
                tell(event)

        return observe


def _within(budget: Budget, most: Budget) -> Budget:
    """`budget`, and nowhere more than `most`; its rounds are its own."""
    if most == Budget():
        return budget
    limits = {}
    for name in ("calls", "tokens", "usd", "seconds"):
        given = [value for value in (getattr(budget, name), getattr(most, name)) if value is not None]
        limits[name] = min(given, default=None)
    return budget.model_copy(update=limits)
