"""What every request needs, made once: the pool, the planners, the store, the keys, and how a question is answered.

Knows a request as `ChatRequest`; how it was written on the wire is its route's. Decides who may be asked what, before
anything runs. Does not print, and answers no HTTP.


@@One question asked several times at once: its independent answers, awaited together or followed event by event.

No task outlives its request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from podium.errors import StoreError
from podium.executor import Dispatcher, ExecutionSettings
from podium.executor.estimate import PlanEstimate, estimate
from podium.executor.ledger import SpendLimit
from podium.orchestrator import Event, Orchestrator, PlanReady, QuestionEnded
from podium.orchestrator.planning import first_model
from podium.planner import Plan, PlanRequest
from podium.server.keys import ANONYMOUS, Caller
from podium.server.live import LiveQuestions
from podium.server.planners import DirectPlanner, Planners
from podium.server.requests import ChatRequest
from podium.server.settings import ServeSettings
from podium.server.worker_selection import eligible_workers, worker_and_fallbacks
from podium.trace import Trace
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workflow import Workflow

if TYPE_CHECKING:
    from podium.server.keys import Keys
    from podium.trace.async_store import AsyncTraceStore

_LOG = logging.getLogger("podium.server")
_RESPONSE_TOKENS = 200
"""That a response is taken to have, where nothing was run."""


ObserverFactory = Callable[[str, ChatRequest, Caller], Callable[[Event], None]]
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
        live: LiveQuestions | None = None,
        settings: ServeSettings | None = None,
        observers: Sequence[ObserverFactory] = (),
    ) -> None:
        self.pool = pool
        self.dispatcher = dispatcher
        self.store = store
        self.keys = keys
        self.live = live or LiveQuestions()
        self.settings = settings or ServeSettings()
        self.observers = list(observers)
        self.planners = Planners(pool, self.settings.planner, dispatcher)
        self.parse_lock = asyncio.Lock()
        """Held by the request whose long body is checked."""
        self.running: dict[str, asyncio.Task[object]] = {}
        """The tasks that answer a question now, by the id of its trace."""

    @property
    def needs_keys(self) -> bool:
        """Whether nobody comes in without a key."""
        return self.keys is not None and self.keys.needed

    async def authenticate(self, authorization: str | None) -> Caller:
        """Who asks, by the header of that name, and that they may ask once more now.

        Raises:
            APIError: 401 or 429.
        """
        if self.keys is None:
            return ANONYMOUS
        caller = await self.keys.caller(authorization)
        await self.keys.admit(caller)
        return caller

    async def answer(
        self,
        request: ChatRequest,
        caller: Caller,
        *,
        trace_id: str,
        by: Orchestrator | None = None,
        sample: int = 0,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        """The trace of `request`, which is kept, however it ends.

        Args:
            by: who answers, as `orchestrator` gave it for these; None: it is asked for here.
            sample, on_event, streams: as `Orchestrator.answer`.

        Raises:
            APIError: it may not be asked so; nothing was run.
            UsageError: it cannot be asked so.
            asyncio.CancelledError: the caller went away; the trace is kept as cancelled.
        """
        orchestrator = by or await self.orchestrator(request, caller)
        observe = self._observer(request, caller, orchestrator, trace_id, on_event)
        task = asyncio.current_task()
        assert task is not None
        self.running[trace_id] = task
        try:
            return await orchestrator.answer(
                request.question,
                seed=request.seed,
                sample=sample,
                trace_id=trace_id,
                on_event=observe,
                streams=streams,
            )
        finally:
            del self.running[trace_id]
            self.live.end(trace_id)

    async def plan(self, request: ChatRequest, by: Orchestrator) -> tuple[Plan, PlanEstimate | None]:
        """What would be done and what it would cost; no worker is called, and without a plan there is no estimate.

        Raises:
            UsageError: it cannot be asked so.
            WorkerError: a served planner did not answer.
        """
        question = request.question
        profiles = by.pool.profiles_for(question.text)
        plan_request = PlanRequest(
            question,
            profiles,
            max_steps=by.max_steps,
            rounds=by.budget.rounds,
            seed=f"{request.seed}/0/plan",
        )
        plan = await by.planner.plan(plan_request)
        for account in by.accounts:
            account.settle(0.0, plan.cost_usd)
        if not isinstance(plan.decision, Workflow):
            return plan, None
        return plan, estimate(plan.decision, by.pool, question, response_tokens=_RESPONSE_TOKENS)

    async def close(self) -> None:
        """Give back what this service opened itself. Calling twice is fine."""
        self.live.close()
        await self.planners.close()

    async def orchestrator(self, request: ChatRequest, caller: Caller) -> Orchestrator:
        """Who answers `request`: refusals are made here.

        Raises:
            APIError, UsageError: as `answer`.
        """
        spend_limit = None if self.keys is None else self.keys.account(caller)
        accounts: tuple[SpendLimit, ...] = () if spend_limit is None else (spend_limit,)
        budget = _within(request.budget, self.settings.budget)
        if request.worker is not None:
            return Orchestrator(
                DirectPlanner(request.worker),
                worker_and_fallbacks(self.pool, caller, request),
                budget=budget.model_copy(update={"rounds": 1}),
                max_steps=1,
                settings=ExecutionSettings(context="plain", past=request.past),
                dispatcher=self.dispatcher,
                accounts=accounts,
            )
        opened = await self.planners.get(request.planner, request.planner_param)
        pool, fallback = eligible_workers(self.pool, caller, request, self.planners), opened.fallback
        if fallback is not None and fallback not in pool.names:
            first = first_model(pool)
            fallback = None if first is None else first.profile.name
        return Orchestrator(
            opened.planner,
            pool,
            budget=budget,
            max_steps=min(request.max_steps, self.settings.most_steps),
            settings=ExecutionSettings(early_stop=request.early_stop),
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
        request: ChatRequest,
        caller: Caller,
        by: Orchestrator,
        trace_id: str,
        on_event: Callable[[Event], None] | None,
    ) -> Callable[[Event], None]:
        """Tells everybody who wants to know, and has the trace kept with what only the server knows of it."""
        live = self.live.begin(
            trace_id,
            caller.name,
            question=request.question.text,
            planner=by.planner.name,
            workers=by.pool.names,
        )
        told = [live, *(watch(trace_id, request, caller) for watch in self.observers)]
        if on_event is not None:
            told.append(on_event)

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                named = {"owner": caller.name, "user": request.user, "metadata": request.metadata}
                trace = event.trace.model_copy(update=named)
                if self.store is not None and request.keep:
                    self._keep(trace)
                event = replace(event, trace=trace)
            elif isinstance(event, PlanReady):
                self.planners.record_plan(by.planner.name, event.error)
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


NextEvents = Callable[[], Awaitable[list[tuple[int, Event]]]]
"""Waits for something to happen; gives all that has, each with the number of its answer."""


async def answer_all(
    service: Service, request: ChatRequest, caller: Caller, ids: Sequence[str], by: Orchestrator
) -> list[Trace]:
    """The traces of one answer for each id.

    Raises:
        UsageError: it cannot be asked so.
    """
    if len(ids) == 1:
        return [await service.answer(request, caller, trace_id=ids[0], by=by)]
    ended: dict[int, Trace] = {}
    async with stream_answers(service, request, caller, ids, by, streams=False) as take:
        while len(ended) < len(ids):
            for number, event in await take():
                if isinstance(event, QuestionEnded):
                    ended[number] = event.trace
    return [ended[number] for number in range(len(ids))]


@asynccontextmanager
async def stream_answers(
    service: Service,
    request: ChatRequest,
    caller: Caller,
    ids: Sequence[str],
    by: Orchestrator,
    *,
    streams: bool = True,
) -> AsyncIterator[NextEvents]:
    """Asks, and gives the function that tells what happens; it raises what asking raises.

    What is still asked when the block is left is cancelled.
    """
    queue: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()

    async def ask(number: int, trace_id: str) -> None:
        def tell(event: Event) -> None:
            queue.put_nowait((number, event))

        try:
            await service.answer(
                request, caller, trace_id=trace_id, by=by, sample=number, on_event=tell, streams=streams
            )
        except Exception as error:  # Raised again by whoever takes: a task of its own would swallow it.
            queue.put_nowait((number, error))

    async def take() -> list[tuple[int, Event]]:
        batch = [await queue.get()]
        while not queue.empty():
            batch.append(queue.get_nowait())
        events: list[tuple[int, Event]] = []
        for number, happened in batch:
            if isinstance(happened, Exception):
                raise happened
            events.append((number, happened))
        return events

    tasks = [asyncio.create_task(ask(number, trace_id)) for number, trace_id in enumerate(ids)]
    try:
        yield take
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
