"""`Team`: workers and a planner, opened together, that answer questions.

Opening a team opens once what all its questions share: the pool, the planner, the files and the call state. The files
are the response cache, the traces, and the state file, in which processes share the day's spending.
Commands, the server, Python programs and Inspect use teams.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from podium.calls import CallState
from podium.calls.call_state import open_call_state
from podium.config import to_overrides
from podium.errors import StoreError, UsageError
from podium.planners.planner import Planner, PrewrittenPlans
from podium.store import TraceStore
from podium.team.events import Event, QuestionEnded, TraceStoreError, stream_events
from podium.team.opened_planner import OpenedPlanner, open_planner
from podium.team.runner import Runner
from podium.team.settings import TeamSettings
from podium.team.team_file import TeamReference, open_pool
from podium.trace import Plan, Trace
from podium.types import Question
from podium.workers.base import Worker, has_paid_workers
from podium.workers.pool import Pool
from podium.workflow import Workflow, render


class Team:
    """Answers any number of questions at the same time, within the workers' limits. `open` opens a team. As an async
    context manager, it closes connections and files at the end."""

    def __init__(
        self,
        settings: TeamSettings,
        runner: Runner,
        opened_planner: OpenedPlanner,
        files: ExitStack,
        store: TraceStore | None = None,
    ) -> None:
        self.settings = settings
        """The settings, with the numbers of rounds and steps that hold, even where the file names none."""
        self.runner = runner
        """Answers the questions. The server, trainings and evaluations call the runner directly, with another planner,
        pool or budget for each question, and store its traces themselves."""
        self.opened_planner = opened_planner
        self.store = store
        """The store that keeps traces. None if traces are not kept."""
        self._files = files

    @classmethod
    def open(
        cls,
        team: str | Path | Pool,
        *,
        workers: Sequence[Worker] = (),
        planner: str | Planner | None = None,
        seed: str = "0",
        **keys: Any,
    ) -> Self:
        """Open a team.

        Args:
            team: a team file, the name of a shipped or installed team, or a pool. The team closes the pool.
            workers: further workers, such as functions of your own (`podium.worker`). They come after the team's.
            planner: a planner of your own, or the key `plan.planner`.
            seed: seeds a planner that plans at random.
            keys: keys of a team file, which override the file's own: `budget=podium.Budget(usd=0.1)`,
                `plan={"max_steps": 3}`, `**{"serve.port": 0}`. Traces are kept only if `store` is among these keys.

        Raises:
            UsageError: an argument names something that is missing or cannot be used. No worker was called.
        """
        if isinstance(planner, str):
            keys = {**keys, "plan.planner": planner}
        elif not isinstance(planner, Planner | None):
            raise UsageError(
                f"planner: {type(planner).__name__} is no podium.Planner; derive its class from it."
            )
        settings = TeamReference(None if isinstance(team, Pool) else str(team), to_overrides(keys)).read()
        pool = team if isinstance(team, Pool) else open_pool(settings)
        return cls.from_settings(
            settings,
            pool.joined(workers) if workers else pool,
            planner=None if isinstance(planner, str) else planner,
            seed=seed,
            store=settings.trace_store if keys.get("store") else None,
        )

    @classmethod
    def from_settings(
        cls,
        settings: TeamSettings,
        pool: Pool | None = None,
        *,
        planner: Planner | OpenedPlanner | None = None,
        call_state: CallState | None = None,
        seed: str = "0",
        for_evaluation: bool = False,
        spend_limit_file: Path | None = None,
        store: str | None = None,
    ) -> Self:
        """Open the team of these settings: each file is read once, and planner and pool are checked once.

        Args:
            pool: workers that the caller has opened. The team closes them. Default: the settings' workers.
            planner: a planner in place of the settings' planner. Unless it is an `OpenedPlanner`, it may cost money.
            call_state: a call state that the caller closes. Default: the team opens and closes one.
            seed: seeds a planner that plans at random.
            for_evaluation: see `Runner.for_evaluation`.
            spend_limit_file: as in `open_call_state`.
            store: the SQLite file that keeps the traces of `ask`, `run` and `stream`. Default: traces are not kept.
        """
        pool = open_pool(settings) if pool is None else pool
        if planner is None:
            planner = open_planner(settings, pool, seed=seed)
        elif isinstance(planner, Planner):
            planner = OpenedPlanner(planner, planner.name, pays=True)
        with ExitStack() as files:
            if call_state is None:
                call_state = files.enter_context(
                    open_call_state(
                        paid_workers=has_paid_workers(pool),
                        cache=settings.cache,
                        replay=settings.replay,
                        day_usd=settings.budget.day_usd,
                        run_usd=settings.budget.run_usd,
                        pays=planner.pays,
                        spend_limit_file=spend_limit_file,
                    )
                )
            runner = planner.make_runner(settings, pool, call_state, shows_unloaded_models=True)
            if for_evaluation:
                runner = runner.for_evaluation()
            effective = {
                "plan": settings.plan.model_copy(update={"max_steps": runner.max_steps}),
                "budget": settings.budget.model_copy(update={"rounds": runner.budget.rounds}),
            }
            # The store is opened last, so that a team that cannot be opened leaves no file.
            traces = None if store is None else files.enter_context(TraceStore(store))
            return cls(settings.model_copy(update=effective), runner, planner, files.pop_all(), traces)

    @property
    def pool(self) -> Pool:
        """The workers; worker k of a plan is `pool[k]`."""
        return self.runner.pool

    @property
    def planner(self) -> Planner:
        """The team's planner."""
        return self.runner.planner

    async def ask(
        self,
        question: str | Question,
        *,
        seed: str | int | None = None,
        sample: int = 0,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        """Answer a question.

        Args:
            seed: seeds all randomness; the same seed repeats a question in the same way. Default: a new seed.
            sample: number of this answer, if you want several independent answers to a question. The response cache
                stores the answers of each number separately. Give each number its own seed, or none. With equal seeds,
                the planner and seeded workers make the same random choices again.
            on_event: called with each event, before the trace is on disk. It must be quick.
            streams: whether there are `StepText` events, with pieces of the answer.

        Returns:
            The trace, with the answer, each step, and the dollars. Its answer is None if no step succeeded, and its
                error says why.

        Raises:
            UsageError: the question is empty, or too long for the planner's model.
            TraceStoreError: a spend limit or the response cache cannot be used, or the trace cannot be stored. Its
                `trace` has the answer, if there is one.
        """
        trace = await self.runner.answer(
            _question(question),
            seed=_seed(seed),
            sample=sample,
            on_event=self._storing(on_event),
            streams=streams,
        )
        return await self._wait_until_stored(trace)

    async def plan(self, question: str | Question, *, seed: str | int | None = None) -> Plan:
        """Write the plan of the first round without calling a worker. Its decision is a `PlanError` if the plan cannot
        be run, or was not written in time. A chat model that conducts costs money. Other errors are those of `ask`.

        Raises:
            WorkerError: the chat model that conducts did not answer.
            BudgetExceededError: a limit refuses the plan.
        """
        return await self.runner.write_plan(_question(question), seed=_seed(seed))

    async def run(
        self, plan: str | Workflow | Plan, question: str | Question, *, seed: str | int | None = None
    ) -> Trace:
        """Run a plan in one round: your own workflow, which may have more than `max_steps` steps, a text with the three
        lists, or a plan that `plan` wrote and that you may have changed. If it cannot be run, the trace's error says
        why, and no worker was called. Seed and errors are those of `ask`."""
        name = self.planner.name if isinstance(plan, Plan) else "written"
        runner = self.runner.for_one_plan(PrewrittenPlans((_prewritten_plan(plan),), name))
        trace = await runner.answer(_question(question), seed=_seed(seed), on_event=self._storing(None))
        return await self._wait_until_stored(trace)

    async def stream(
        self, question: str | Question, *, seed: str | int | None = None
    ) -> AsyncGenerator[Event]:
        """Answer a question, and yield what happens while it happens: `PlanReady`, `StepStarted`, `StepText` (a piece
        of the answer), `StepEnded`, `RoundEnded` and, at the end, `QuestionEnded` with the trace. Leaving the loop
        cancels the question. Seed and errors are those of `ask`."""

        def answer(on_event: Callable[[Event], None]) -> Coroutine[Any, Any, Trace]:
            return self.ask(question, seed=seed, on_event=on_event, streams=True)

        async with aclosing(stream_events(answer)) as new_events:
            async for events in new_events:
                for event in events:
                    yield event

    def _storing(self, on_event: Callable[[Event], None] | None) -> Callable[[Event], None] | None:
        """`on_event`, after the store has taken the trace; that of a cancelled question too."""
        store = self.store
        if store is None:
            return on_event

        def keep_trace(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                store.add(event.trace)
            if on_event is not None:
                on_event(event)

        return keep_trace

    async def _wait_until_stored(self, trace: Trace) -> Trace:
        """The trace, once it is on disk: the caller may store its id elsewhere and be killed."""
        if self.store is not None:
            try:
                await asyncio.to_thread(self.store.flush)
            except StoreError as error:
                raise TraceStoreError(error, trace) from error
        return trace

    async def close(self) -> None:
        """Close connections and files. Calling twice is fine. The team cannot answer afterwards."""
        try:
            await self.pool.close()
        finally:
            await self.release()

    async def release(self) -> None:
        """Close everything except the workers, which the caller still uses."""
        try:
            await self.opened_planner.close()
        finally:
            await asyncio.to_thread(self._files.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _seed(seed: str | int | None) -> str:
    return token_hex(8) if seed in (None, "") else str(seed)


def _question(question: str | Question) -> Question:
    return Question(text=question) if isinstance(question, str) else question


def _prewritten_plan(plan: str | Workflow | Plan) -> str | Plan:
    """A plan that `PrewrittenPlans` takes. A workflow becomes a plan that costs nothing, and a text stays a text."""
    workflow = plan.decision if isinstance(plan, Plan) else plan
    if isinstance(workflow, Workflow):
        max_tokens = plan.max_tokens if isinstance(plan, Plan) else ()
        return Plan(render(workflow), workflow, max_tokens=max_tokens)
    return plan.text if isinstance(plan, Plan) else str(plan)
