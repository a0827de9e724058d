"""A team for Python programs: workers and a planner that answer questions together.

`Team.open` opens the pool, the planner, the files, and the dispatcher that all questions share. `SyncTeam` is the same
for programs that are not async. This module prints nothing. It writes the response cache, the traces, and the state
file, in which processes share cooldowns and the day's spending.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Self

from podium.conductor.checkpoint import PlanSettings
from podium.config import build
from podium.errors import StoreError
from podium.executor import Dispatcher, ExecutionSettings, Ledger
from podium.executor.accounts import open_day_account
from podium.executor.state_file import CooldownFile
from podium.library.settings import TeamSettings
from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.orchestrator.planning import OpenedPlanner, open_planner, pays_for_plans, plan_settings
from podium.orchestrator.team import open_pool
from podium.planner import Plan, Planner, PlanRequest, paid_plan
from podium.rollout.scorer import FixedPlan
from podium.trace import Trace
from podium.trace.store import TraceStore, default_path
from podium.types import Budget, Question
from podium.workers.base import Worker
from podium.workers.pool import Pool, has_paid_workers
from podium.workers.response_cache import ResponseCache
from podium.workflow import Workflow, render


class Team:
    """Answers any number of questions at the same time; all share the workers' limits. `open` opens a team.

    It is an async context manager, which closes its connections and files at the end.
    """

    def __init__(
        self, orchestrator: Orchestrator, opened: OpenedPlanner, store: TraceStore | None, files: ExitStack
    ) -> None:
        self.orchestrator = orchestrator
        self.store = store
        self._opened = opened
        self._files = files

    @classmethod
    def open(
        cls,
        pool: str | Path | Pool = "embedded",
        *,
        workers: Sequence[Worker] = (),
        planner: str | Planner = "conductor",
        conductor: str | Path | None = None,
        cost_sensitivity: float | None = None,
        budget: Budget | None = None,
        max_steps: int | None = None,
        early_stop: bool = False,
        cache: str | Path | None = None,
        store: str | Path | None = None,
        day_budget_usd: float | None = None,
    ) -> Self:
        """Open a team.

        Args:
            pool: the pool file, a shipped pool's name, or a pool. The team closes it.
            workers: further workers, such as functions of your own (`podium.worker`); they come after the pool's.
            planner: "conductor", a baseline such as "single:WORKER", or a planner of your own.
            conductor: the checkpoint that plans. None: the Conductor that the pool file names in `[conductor]`. If it
                names none: the shipped one if all workers are simulated, else the pool's first model, untrained.
            cost_sensitivity: how much plans should save, for a checkpoint that was trained with levels.
            budget: hard limits for each question. If it sets no rounds, there are as many as in the Conductor's
                training.
            max_steps: the most steps of a plan. None: as many as the Conductor was trained with, else 5.
            early_stop: whether a vote calls no more workers once its result is certain.
            cache: the SQLite file of the response cache. None: no cache.
            store: the SQLite file that keeps the traces. None: they are not kept.
            day_budget_usd: the most dollars that all of Podium's programs may cost together in a day (UTC). None:
                $PODIUM_DAY_BUDGET_USD, if it is set.

        Raises:
            UsageError: an argument names something that is missing or cannot be used. No worker was called.
        """
        given = {
            "pool": pool if isinstance(pool, str) else None,
            "planner": planner if isinstance(planner, str) else None,
            "conductor": None if conductor is None else str(conductor),
            "cost_sensitivity": cost_sensitivity,
            "max_steps": max_steps,
            "early_stop": early_stop,
            "cache": cache,
            "store": store,
            "no_store": store is None,
            "day_budget_usd": day_budget_usd,
        }
        settings = build(
            {key: value for key, value in given.items() if value is not None},
            TeamSettings,
            source="Team.open",
        )
        opened_pool = pool if isinstance(pool, Pool) else open_pool(str(pool))
        return cls._open(
            settings,
            opened_pool.joined(workers) if workers else opened_pool,
            planner=None if isinstance(planner, str) else planner,
            budget=budget or Budget(),
            rounds=budget.rounds if budget is not None and "rounds" in budget.model_fields_set else None,
        )

    @classmethod
    def of_settings(cls, settings: TeamSettings, *, seed: str = "0") -> Self:
        """Open the team that settings describe. If planning fails, no worker answers the question instead.

        Args:
            seed: seeds a planner that plans at random.

        Raises:
            UsageError: as `open`.
        """
        pool = open_pool(settings.pool)
        return cls._open(
            settings, pool, budget=settings.budget, rounds=settings.rounds, seed=seed, fallback=False
        )

    @classmethod
    def _open(
        cls,
        settings: TeamSettings,
        pool: Pool,
        *,
        budget: Budget,
        rounds: int | None,
        planner: Planner | None = None,
        seed: str = "0",
        fallback: bool = True,
    ) -> Self:
        with ExitStack() as files:
            dispatcher = _open_dispatcher(settings, pool, files, paid=planner is not None)
            if planner is None:
                opened = open_planner(settings, pool, seed=seed, dispatcher=dispatcher)
                trained = plan_settings(settings, pool)
            else:
                opened, trained = OpenedPlanner(planner, planner.name), PlanSettings()
            orchestrator = Orchestrator(
                opened.planner,
                pool,
                budget=budget.model_copy(update={"rounds": rounds or trained.rounds}),
                max_steps=settings.max_steps or trained.max_steps,
                settings=ExecutionSettings(early_stop=settings.early_stop),
                dispatcher=dispatcher,
                plan_fallback=opened.fallback if fallback else None,
            )
            store = None
            if not settings.no_store:
                store = files.enter_context(TraceStore(settings.store or default_path()))
            return cls(orchestrator, opened, store, files.pop_all())

    @property
    def pool(self) -> Pool:
        """The workers; worker k of a plan is `pool[k]`."""
        return self.orchestrator.pool

    @property
    def planner(self) -> Planner:
        """The team's planner."""
        return self.orchestrator.planner

    async def ask(self, question: str | Question, *, seed: str | None = None, sample: int = 0) -> Trace:
        """Answer a question.

        Args:
            seed: seeds all randomness; the same seed repeats a question in the same way. None: a new seed.
            sample: number of this answer, if you want several independent answers to a question. The response cache
                stores the answers of each number separately. Give each number a seed of its own, or none: with equal
                seeds the planner and seeded workers draw the same again.

        Returns:
            The trace, with the answer, each step, and the dollars. Its answer is None if no step succeeded; its error
            says why.

        Raises:
            UsageError: the question is empty, or too long for the planner's model.
            StoreError: an account or the response cache cannot be used, or the trace cannot be stored. Its `trace` has
                the answer, if there is one.
        """
        return await self._answer(self.orchestrator, question, seed=seed, sample=sample)

    async def plan(self, question: str | Question, *, seed: str | None = None) -> Plan:
        """Write the plan of the first round without calling a worker. If a chat model conducts, the plan costs money.

        Returns:
            The plan; its decision is a `Workflow`, or a `PlanError` if the planner wrote no plan that can be run.

        Raises:
            UsageError: as `ask`.
            StoreError: an account cannot be written.
            WorkerError: the model that conducts did not answer, or a budget refuses the plan (kind "budget").
        """
        asked, team = _question(question), self.orchestrator
        request = PlanRequest(
            asked,
            self.pool.profiles_for(asked.text),
            max_steps=team.max_steps,
            rounds=team.budget.rounds,
            seed=f"{seed or token_hex(8)}/0/plan",
        )
        return await paid_plan(self.planner, request, Ledger(team.budget, accounts=team.accounts))

    async def run(
        self, plan: str | Workflow | Plan, question: str | Question, *, seed: str | None = None
    ) -> Trace:
        """Run a plan in one round: your own, or one that `plan` wrote and that you may have changed.

        Args:
            plan: a workflow, which may have more than `max_steps` steps; or a text with the three lists.
            seed: as `ask`'s.

        Returns:
            The trace; if the plan cannot be run, its error says why, and no worker was called.

        Raises:
            UsageError, StoreError: as `ask`.
        """
        team = self.orchestrator
        once = Orchestrator(
            _planner_of(plan, team.planner.name if isinstance(plan, Plan) else "written"),
            team.pool,
            budget=team.budget.model_copy(update={"rounds": 1}),
            max_steps=team.max_steps,
            settings=team.settings,
            dispatcher=team.dispatcher,
        )
        return await self._answer(once, question, seed=seed)

    async def stream(self, question: str | Question, *, seed: str | None = None) -> AsyncGenerator[Event]:
        """Answer a question, and yield what happens while it happens.

        The events are `PlanReady`, `StepStarted`, `StepText` (a piece of the answer), `StepEnded`, `RoundEnded` and, at
        the end, `QuestionEnded` with the trace. Leaving the loop cancels the question.

        Raises:
            UsageError, StoreError: as `ask`.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        answering = asyncio.create_task(
            self._answer(self.orchestrator, question, seed=seed, on_event=events.put_nowait, streams=True)
        )
        answering.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await answering
        finally:
            answering.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([answering])

    async def _answer(
        self,
        orchestrator: Orchestrator,
        question: str | Question,
        *,
        seed: str | None,
        sample: int = 0,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        store = self.store

        def observe(event: Event) -> None:
            # The trace is also kept if the question is cancelled.
            if store is not None and isinstance(event, QuestionEnded):
                store.add(event.trace)
            if on_event is not None:
                on_event(event)

        trace = await orchestrator.answer(
            _question(question),
            seed=token_hex(8) if seed is None else seed,
            sample=sample,
            on_event=on_event if store is None else observe,
            streams=streams,
        )
        if store is not None:
            # The caller may store the trace's id elsewhere. If the process is killed later, the trace must be on disk
            # already.
            try:
                await asyncio.to_thread(store.flush)
            except StoreError as error:
                error.trace = trace
                raise
        return trace

    async def close(self) -> None:
        """Close connections and files. Calling twice is fine. The team cannot answer afterwards."""
        try:
            await self.pool.close()
            await self._opened.close()
        finally:
            await asyncio.to_thread(self._files.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _question(question: str | Question) -> Question:
    return Question(text=question) if isinstance(question, str) else question


@dataclass(frozen=True, slots=True)
class _WrittenPlan:
    """A planner whose plan is written already, and paid for."""

    name: str
    written: Plan

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan, for any request."""
        del request
        return self.written


def _planner_of(plan: str | Workflow | Plan, name: str) -> Planner:
    """A planner that answers every request with `plan`. It parses a text, and leaves a workflow as it is."""
    workflow = plan.decision if isinstance(plan, Plan) else plan
    if isinstance(workflow, Workflow):
        max_tokens = plan.max_tokens if isinstance(plan, Plan) else ()
        return _WrittenPlan(name, Plan(render(workflow), workflow, cost_recorded=True, max_tokens=max_tokens))
    return FixedPlan(plan.text if isinstance(plan, Plan) else str(plan), name=name)


def _open_dispatcher(settings: TeamSettings, pool: Pool, files: ExitStack, *, paid: bool) -> Dispatcher:
    """Open the dispatcher as `podium ask` does. A team whose workers cost no money does not use the day's budget.

    Args:
        paid: True: the planner may cost money. False: the settings and the pool say whether plans cost money.
    """
    cache = None
    if settings.cache is not None:
        cache = files.enter_context(ResponseCache(settings.cache, replay=settings.replay))
    paid = paid or pays_for_plans(settings, pool) or has_paid_workers(pool)
    day = open_day_account(settings.day_budget_usd) if paid else None
    accounts = [] if day is None else [files.enter_context(closing(day))]
    return Dispatcher(cache=cache, accounts=accounts, cooldowns=files.enter_context(closing(CooldownFile())))
