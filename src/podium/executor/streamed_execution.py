"""Runs the first steps of a workflow while the rest of its plan is being written.

Steps that turn out to be unneeded are cancelled, and kept as abandoned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from podium.calls.worker_call import MakeListeners
from podium.executor.execution import Execution
from podium.executor.question_context import ExecutionSettings, QuestionContext, RoundContext, StepEvent
from podium.trace import Span
from podium.types import DEFAULT_OPTIONS, Question
from podium.workers.pool import Pool
from podium.workers.view import EarlierStep
from podium.workflow import Step, Workflow

_ABANDONED = "It was started while the plan was being written, and the plan does not need it."


class StreamedExecution(Execution):
    """An execution that starts without steps: `extend` adds the first steps, and `complete` the whole workflow. Its
    events are held back until `release_events`, since they make no sense before the event of the plan."""

    def __init__(self, context: QuestionContext, round_context: RoundContext) -> None:
        self._observer = context.observe
        observe = None if context.observe is None else self._observe
        super().__init__(replace(context, observe=observe), Workflow(()), round_context)
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        """The tasks of the steps that have started and not ended."""
        self._more_steps = asyncio.Event()
        """Set when further steps of the workflow become known."""
        self._is_complete = False
        self._is_abandoning = False
        """Whether unneeded steps are being cancelled now."""
        self._held_events: list[StepEvent] | None = []
        """Events that are not sent yet. None once events are sent at once."""
        self.abandoned: tuple[Span, ...] = ()
        """Steps that were started although the whole workflow does not need them, or changes them."""

    async def run(self) -> None:
        """Run the steps as they become known, and end once the whole workflow has run."""
        async with self._running_steps():
            while not self._is_complete or self._is_abandoning:
                await self._more_steps.wait()
                self._more_steps.clear()
                for position in self._start_ready():
                    self._start(position)
            await self._follow(self._start_ready())

    def extend(self, steps: tuple[Step, ...]) -> None:
        """Start the first steps of the workflow, which will have at least one more step. Steps that do not continue the
        known steps are left for `complete`."""
        known = len(self._schedule.workflow.steps)
        if not self._is_complete and len(steps) > known == self._schedule.common_prefix_length(steps):
            self._schedule.set_workflow(Workflow(steps), range(len(steps)))
            self._max_tokens = (None,) * len(steps)
            self._more_steps.set()

    async def complete(
        self,
        workflow: Workflow | None,
        max_tokens: Sequence[int | None] = (),
        shown: tuple[EarlierStep, ...] = (),
    ) -> None:
        """Set the whole workflow, once its plan is written, or None if there is none to run, and cancel started steps
        that it does not have or need. The limits `max_tokens` do not hold for steps that have started."""
        whole = workflow or Workflow(())
        # The last step gets other options than a step in the middle, so it is never one of the started steps.
        same = self._schedule.common_prefix_length(whole.steps[:-1])
        needed = self._needed(whole)
        cancelled = [task for p, task in self._tasks.items() if p >= same or p not in needed]
        self._is_complete = self._is_abandoning = True
        for task in cancelled:
            task.cancel()
        try:
            await _wait_until_ended(cancelled)
        finally:
            self._is_abandoning = False
            # A task that was cancelled before it began has not removed itself.
            self._tasks = {p: task for p, task in self._tasks.items() if task not in cancelled}
            self.abandon(same)
            self._set_workflow(whole, max_tokens, shown)
            self._more_steps.set()

    def abandon(self, position: int = 0) -> None:
        """Count this step and later steps as abandoned. All of them must have ended."""
        self.abandoned += tuple(
            span.model_copy(update={"error": _ABANDONED}) for span in self._schedule.forget_from(position)
        )

    def release_events(self) -> None:
        """Send the events that were held back. Later events are sent at once."""
        held, self._held_events = self._held_events or (), None
        for event in held:
            self._observe(event)

    def _observe(self, event: StepEvent) -> None:
        if self._held_events is not None:
            self._held_events.append(event)
        elif self._observer is not None:
            self._observer(event)

    def _make_listeners(self, position: int) -> MakeListeners | None:
        # Until the workflow is complete, no known step is the last, so no step's text is the answer.
        return super()._make_listeners(position) if self._is_complete else None

    def _start_ready(self) -> list[int]:
        # While steps are being cancelled, the schedule still has the steps that the whole workflow does not have.
        return [] if self._is_abandoning else super()._start_ready()

    def _start(self, position: int) -> asyncio.Task[None]:
        task = self._tasks[position] = super()._start(position)
        return task

    def _begin(self, position: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[position] = task  # A chain of steps runs in the task of its first step.
        super()._begin(position)

    def _end(self, position: int, *call: Any, **outcome: Any) -> None:
        del self._tasks[position]
        super()._end(position, *call, **outcome)

    @property
    def _why_stopped(self) -> str:
        return _ABANDONED if self._is_abandoning else super()._why_stopped


async def _wait_until_ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait until cancelled tasks have ended and recorded their spending, even if the caller is cancelled meanwhile."""
    stopped = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as cancelled:
            stopped = cancelled
    if stopped is not None:
        raise stopped


def may_overlap(pool: Pool, settings: ExecutionSettings, question: Question) -> bool:
    """Whether steps may start while the rest of their plan is being written. They wait if a request depends on the
    whole plan: a vote that stops early chooses which workers are called, and a step from which a vote may copy the
    answer gets the caller's options."""
    if settings.early_stop:
        return False
    has_vote = any(worker.traits.stopping_rule is not None for worker in pool)
    return not (has_vote and question.options != DEFAULT_OPTIONS)
