"""An execution whose workflow is still being written: its first steps run while the planner writes the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import Any

from podium.executor.execution import Execution
from podium.executor.question_context import QuestionContext, StepEnded, StepStarted, StepText
from podium.trace import Attempt, Span
from podium.workers.base import Request, Worker
from podium.workflow import Step, Workflow

_NOT_PLANNED = "It was started while the plan was being written, and the plan does not need it."


class GrowingExecution(Execution):
    """As `Execution`, for a workflow that comes in parts: its first steps by `extend`, the whole by `complete`.

    Its events are held back until `release_events`, since they make no sense before their plan.
    """

    def __init__(
        self,
        question_context: QuestionContext,
        *,
        round: int,
        previous: str | None,
        earlier_calls: Mapping[int, int],
    ) -> None:
        self._observe = question_context.observe
        if self._observe is not None:
            question_context = replace(question_context, observe=self._hold)
        super().__init__(
            question_context, Workflow(()), round=round, previous=previous, earlier_calls=earlier_calls
        )
        self.abandoned: tuple[Span, ...] = ()
        """Steps that were started, and that the whole workflow has not, or has otherwise."""
        self._held: list[StepStarted | StepText | StepEnded] | None = []
        self._whole = self._abandons = False
        self._news = asyncio.Event()
        """Set when there are further steps."""
        self._calling: dict[int, asyncio.Task[Any]] = {}
        """The tasks of the steps that have started and not ended."""

    def extend(self, steps: tuple[Step, ...]) -> None:
        """Start the first steps of a plan that will have at least one more.

        Steps that do not continue those that are known are left for `complete`.
        """
        known = self._workflow.steps
        if not self._whole and len(steps) > len(known) and steps[: len(known)] == known:
            self._plan_to_run(Workflow(steps), range(len(steps)))
            self._answering = frozenset()
            self._news.set()

    async def complete(self, workflow: Workflow | None, max_tokens: Sequence[int | None] = ()) -> None:
        """The plan is written. Steps that were started and that it does not have or need are cancelled.

        Args:
            workflow: the whole one; None: there is none to run, or no longer.
            max_tokens: as for `Execution`. It does not hold for steps that were started before.
        """
        whole = workflow or Workflow(())
        # The last step is asked in a way of its own, so it is not taken from what was started.
        pairs = zip(self._workflow.steps, whole.steps[:-1], strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        needed = self._needed(whole)
        cancelled = [task for p, task in self._calling.items() if p >= same or p not in needed]
        self._whole = self._abandons = True
        for task in cancelled:
            task.cancel()
        try:
            await _ended(cancelled)
        finally:
            self._abandons = False
            # A task that was cancelled before it began has not left by itself.
            self._calling = {p: task for p, task in self._calling.items() if task not in cancelled}
            self.abandoned += tuple(
                self._spans.pop(p).model_copy(update={"error": _NOT_PLANNED})
                for p in sorted(self._spans)
                if p >= same
            )
            self._started = {p for p in self._started if p < same}
            self._plan_to_run(whole, needed, max_tokens)
            self._news.set()

    def release_events(self) -> None:
        """Send the events that were held back, and from now on each at once."""
        held, self._held = self._held or (), None
        for event in held:
            self._hold(event)

    async def run(self) -> None:
        """Run each step once it is known and its inputs are there, until the workflow is whole and has ended."""
        try:
            async with self._limit, self._group:
                while not self._whole:
                    await self._news.wait()
                    self._news.clear()
                    for position in self._ready():
                        self._start(position)
                await self._follow(self._ready())
        except TimeoutError:  # As in `Execution.run`.
            if not self._limit.expired():
                raise

    def _start(self, position: int) -> asyncio.Task[None]:
        self._calling[position] = task = super()._start(position)
        return task

    def _hold(self, event: StepStarted | StepText | StepEnded) -> None:
        if self._held is not None:
            self._held.append(event)
        elif self._observe is not None:
            self._observe(event)

    @contextmanager
    def _recorded(
        self, position: int, worker: Worker, request: Request, attempts: Sequence[Attempt]
    ) -> Iterator[dict[str, Any]]:
        task = asyncio.current_task()
        assert task is not None
        self._calling[position] = task
        try:
            with super()._recorded(position, worker, request, attempts) as result:
                yield result
        finally:
            del self._calling[position]

    @property
    def _why_stopped(self) -> str:
        return _NOT_PLANNED if self._abandons else super()._why_stopped


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait until cancelled tasks have ended, also where the caller is cancelled meanwhile, so that all is booked."""
    stopped = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as cancelled:
            stopped = cancelled
    if stopped is not None:
        raise stopped
