"""Runs the first steps of a plan while a planner still writes the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any, Self

from podium.executor.execution import ABANDONED, Execution, StartedStep
from podium.executor.question_context import ExecutionSettings, QuestionContext, RoundContext, StepEvent
from podium.trace import Span
from podium.types import DEFAULT_OPTIONS, Question
from podium.workers.pool import Pool
from podium.workflow import Step, Workflow, needed_steps


class EarlyStart:
    """The first steps of a plan that is being written. They run within its `async with` block: leaving it cancels those
    that still run."""

    def __init__(self, context: QuestionContext, round_context: RoundContext) -> None:
        self._context = context
        self._round_context = round_context
        self._steps: tuple[Step, ...] = ()
        """The first steps, as far as they are written."""
        self._started: dict[int, StartedStep] = {}
        self._is_written = False
        """Whether the plan is written, so that no more steps start here."""
        self._kept = 0
        """How many of the first steps the plan has."""
        self._group = asyncio.TaskGroup()
        self._held_events: list[StepEvent] = []
        """Events that make no sense before the event of the plan."""
        self._emit: Callable[[StepEvent], None] = self._held_events.append

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        for step in self._started.values():
            step.task.cancel()
        await self._group.__aexit__(*raised)

    @property
    def abandoned(self) -> tuple[Span, ...]:
        """The started steps that the plan does not have, as far as they have ended."""
        spans = [step.span for position, step in sorted(self._started.items()) if position >= self._kept]
        return tuple(span.model_copy(update={"error": ABANDONED}) for span in spans if span is not None)

    def extend(self, steps: tuple[Step, ...]) -> None:
        """Start the first steps of the plan, which will have at least one more step. Steps that do not continue the
        known steps wait for the plan."""
        known = len(self._steps)
        if not self._is_written and len(steps) > known and steps[:known] == self._steps:
            self._steps = steps
            self._start_ready()

    def keep(self, workflow: Workflow) -> dict[int, StartedStep]:
        """Start no more steps, since the plan is written, and cancel those that its workflow does not have or need.
        Returns the started steps that it has."""
        self._is_written = True
        # The last step gets other options than a step in the middle, so it is never one of the started steps.
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self._steps, workflow.steps[:-1], strict=False))
        self._kept = len(list(same))
        needed = range(self._kept) if self._context.settings.run_all else needed_steps(workflow)
        for position, step in self._started.items():
            if position >= self._kept or position not in needed:
                step.is_unneeded = True
                step.task.cancel()
        return {position: step for position, step in self._started.items() if position < self._kept}

    async def wait_until_cancelled(self) -> None:
        """Wait until the cancelled steps have ended and recorded their spending."""
        if cancelled := [step.task for step in self._started.values() if step.is_unneeded]:
            await asyncio.wait(cancelled)

    def release_events(self) -> None:
        """Send the events that were held back. Later events are sent at once."""
        self._emit = self._context.on_event
        for event in self._held_events:
            self._emit(event)

    def _start_ready(self) -> None:
        """Start the steps whose inputs have all ended."""
        draft = Execution(
            replace(self._context, on_event=lambda event: self._emit(event)),  # noqa: PLW0108 - It changes.
            Workflow(self._steps),
            self._round_context,
            started_steps=self._started,
            is_draft=True,
        )
        for position, step in enumerate(self._steps):
            reads = step.access.resolve(position)
            if position not in self._started and all(draft.span_of(j) is not None for j in reads):
                self._started[position] = StartedStep(self._group.create_task(self._run(draft, position)))

    async def _run(self, draft: Execution, position: int) -> None:
        step = draft.begin(position)
        try:
            step.outcome = await step.call
        finally:
            draft.end(step)
        if not self._is_written:
            self._start_ready()


def may_start_early(pool: Pool, settings: ExecutionSettings, question: Question) -> bool:
    """Whether steps may start while the rest of their plan is being written. They wait if a request depends on the
    whole plan: a vote that stops early chooses which workers are called, and a step from which a vote may copy the
    answer gets the caller's options."""
    if settings.early_stop:
        return False
    has_vote = any(worker.traits.stopping_rule is not None for worker in pool)
    return not (has_vote and question.options != DEFAULT_OPTIONS)
