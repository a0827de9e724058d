"""`podium ask`: answers one question, draws its trace and stores it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex

from podium.cli.drawing import print_trace
from podium.cli.opening import (
    budget_from_options,
    named_pool,
    open_dispatcher,
    planner_from_options,
    trained_plan,
)
from podium.cli.options import (
    DEFAULT_CALLS,
    SHIPPED_CONDUCTOR,
    UNLIMITED,
    BudgetOptions,
    DispatchOptions,
    EarlyStop,
    Flag,
    NamedPool,
    PlannerOptions,
    StoreFile,
)
from podium.cli.printable import printable
from podium.cli.terminal import open_console, open_trace_store, read_question
from podium.errors import QuestionFailedError, StoreError, UsageError
from podium.executor import ExecutionSettings, StepEnded, StepStarted
from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.orchestrator.team import open_pool
from podium.trace import Trace
from podium.trace.serialization import to_json


def ask(
    question: str,
    /,
    *,
    pool: NamedPool = None,
    planner: PlannerOptions = SHIPPED_CONDUCTOR,
    max_steps: int | None = None,
    early_stop: EarlyStop = False,
    budget: BudgetOptions = UNLIMITED,
    calls: DispatchOptions = DEFAULT_CALLS,
    store: StoreFile = None,
    no_store: Flag = False,
    seed: str | None = None,
    full: Flag = False,
    json: Flag = False,
) -> int:
    """Answer a question; returns 1 if there is no answer.

    Args:
        question: The question, in quotes; "-" reads it from standard input.
        max_steps: The most steps of a plan. Default: as many as the Conductor was trained with, else 5.
        no_store: Store no trace.
        seed: Seeds all randomness; the same seed repeats a question in the same way. Default: a new seed.
        full: Show every text uncut, and the messages to each worker.
        json: Print the trace as one line of JSON.
    """
    asked_question = read_question(question)
    budget_from_options(budget)
    if max_steps is not None and max_steps < 1:
        raise UsageError(f"--max-steps {max_steps}: a plan has at least 1 step.")
    chosen_seed = token_hex(8) if seed is None else seed
    workers = open_pool(named_pool(pool))
    trained = trained_plan(planner, workers)

    ended: list[Trace] = []

    async def answer(stores: ExitStack) -> None:
        async with (
            open_dispatcher(calls, workers, planner=planner) as dispatcher,
            planner_from_options(planner, workers, seed=chosen_seed, dispatcher=dispatcher) as opened,
        ):
            orchestrator = Orchestrator(
                opened.planner,
                workers,
                budget=budget_from_options(budget, trained),
                max_steps=max_steps or trained.max_steps,
                settings=ExecutionSettings(early_stop=early_stop),
                dispatcher=dispatcher,
                plan_fallback=opened.fallback,
            )
            try:
                keep = stores.enter_context(_keeping(store, no_store))
                with _progress() as show:

                    def observe(event: Event) -> None:
                        if isinstance(event, QuestionEnded):
                            ended.append(event.trace)
                            keep(event.trace)
                        show(event)

                    await orchestrator.answer(asked_question, seed=chosen_seed, on_event=observe)
            finally:
                await workers.close()

    # An answer is shown before a file that is locked or full is waited for, and also if it can never be written.
    with ExitStack() as stores:
        try:
            asyncio.run(answer(stores))
        except StoreError:
            if ended and ended[0].answer is not None:
                _show(ended[0], json=json, full=full)
            raise
        (trace,) = ended
        _show(trace, json=json, full=full)
    if trace.answer is None:
        raise QuestionFailedError(trace.error or "No step succeeded.")
    return 0


def _show(trace: Trace, *, json: bool, full: bool) -> None:
    if json:
        print(to_json(trace), flush=True)
    else:
        print_trace(trace, open_console(), full=full)
        sys.stdout.flush()


@contextmanager
def _keeping(path: Path | None, no_store: bool) -> Iterator[Callable[[Trace], None]]:
    """Stores the trace that it is given; waits for that when the block ends."""
    if no_store:
        yield lambda trace: None
        return
    with open_trace_store(path, create=True) as store:
        yield store.add


@contextmanager
def _progress() -> Iterator[Callable[[Event], None]]:
    """A line on a terminal's stderr with the workers that run now; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    working: dict[tuple[int, int], str] = {}
    with open_console(stderr=True).status("planning") as status:

        def show(event: Event) -> None:
            if isinstance(event, StepStarted):
                working[event.round, event.position] = printable(event.worker)
            elif isinstance(event, StepEnded):
                working.pop((event.round, event.span.position), None)
            status.update(", ".join(working.values()) or "planning")

        yield show
