"""One workflow, run once: a step starts as soon as the steps that it reads are done.

`Schedule` decides which steps start. No call outlives `run`, however `run` ends. `streamed_execution` runs a workflow
whose plan is still being written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from podium.calls import AttemptLog
from podium.calls.worker_call import MakeListeners
from podium.executor.early_stopping import find_early_stops
from podium.executor.echoed_fences import FenceFilter
from podium.executor.question_context import QuestionContext, StepEnded, StepStarted, StepText
from podium.executor.schedule import Schedule
from podium.executor.step_call import WorkerAnswer, call_with_fallbacks
from podium.executor.step_request import RoundContext, StepRequestBuilder
from podium.trace import Attempt, Reply, Span, SpanStatus
from podium.types import Message, Spent
from podium.workers.base import Request
from podium.workers.view import EarlierStep
from podium.workflow import Workflow, needed_steps

_GONE = "The question was cancelled."
_SPARED = "It was not called: no answer of it could change the vote."


@dataclass(slots=True)
class StepResult:
    """What is known about a step that has started."""

    status: SpanStatus | None = None
    """How the step ended. None until its call has ended."""
    error: str | None = None
    messages: tuple[Message, ...] = ()
    started_s: float = 0.0
    ended_s: float = 0.0
    log: AttemptLog = field(default_factory=AttemptLog)
    reply: Reply | None = None
    answered_by: str | None = None
    spent: Spent = Spent()


class Execution:
    """One workflow, run for one question.

    Args:
        context: the question, its pool and its budget.
        workflow: a workflow that was checked: it names workers of the pool, and its steps read only earlier steps.
        max_tokens: the plan's limit of output tokens for each step. None sets no limit. Steps beyond the end of the
            sequence have no limit either.
        shown: steps of earlier rounds that a step reads in place of the final response of the round before.
    """

    def __init__(
        self,
        context: QuestionContext,
        workflow: Workflow,
        round_context: RoundContext = RoundContext(),
        *,
        max_tokens: Sequence[int | None] = (),
        shown: tuple[EarlierStep, ...] = (),
    ) -> None:
        self._context = context
        self._round = round_context.count
        self._group = asyncio.TaskGroup()
        self._limit = asyncio.timeout_at(context.ledger.deadline)
        self._schedule = Schedule()
        self._requests = StepRequestBuilder(context, self._schedule, round_context)
        self._set_workflow(workflow, max_tokens, shown)

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span for each step of the workflow, in order, including steps that have not started or not ended."""
        schedule = self._schedule
        return tuple(
            schedule.spans.get(position) or self._unstarted(position)
            for position in range(len(schedule.workflow.steps))
        )

    async def run(self) -> None:
        """Run each step that the last step needs. With `run_all`, run all steps. `spans` has the results, also after a
        cancellation."""
        async with self._running_steps():
            await self._follow(self._start_ready())

    def _running_steps(self) -> AbstractAsyncContextManager[object]:
        """A context in which steps run. When it ends, no step is running."""
        return self._group if self._context.ledger.deadline is None else self._until_time_is_up()

    @asynccontextmanager
    async def _until_time_is_up(self) -> AsyncGenerator[None]:
        try:
            async with self._limit, self._group:
                yield
        except TimeoutError:  # The budget's time is up. A worker's timeout is a failed attempt.
            if not self._limit.expired():
                raise

    def _needed(self, workflow: Workflow) -> Sequence[int]:
        return range(len(workflow.steps)) if self._context.settings.run_all else needed_steps(workflow)

    def _set_workflow(
        self, workflow: Workflow, max_tokens: Sequence[int | None], shown: tuple[EarlierStep, ...]
    ) -> None:
        needed = self._needed(workflow)
        self._requests.set_workflow(workflow, max_tokens, shown)
        early_stop = self._context.settings.early_stop
        self._schedule.set_workflow(
            workflow,
            needed,
            find_early_stops(workflow, needed, self._context, self._round) if early_stop else {},
            self._requests.earlier_responses,
        )

    def _start_ready(self) -> list[int]:
        """The steps that start now."""
        return self._schedule.start_ready()

    def _start(self, position: int) -> asyncio.Task[None]:
        return self._group.create_task(self._follow([position]))

    async def _follow(self, ready: list[int]) -> None:
        """Run the steps in `ready`, then the steps that become ready after them. A chain of steps stays in one task."""
        while ready:
            for position in ready[1:]:
                self._start(position)
            position = ready[0]
            worker = self._context.pool[self._schedule.workflow.steps[position].worker]
            request = self._requests.make(position, worker)
            result = self._begin(position, request)
            try:
                outcome = await call_with_fallbacks(
                    self._context, worker, request, result.log, self._make_listeners(position)
                )
                if isinstance(outcome, WorkerAnswer):
                    result.status, result.reply = "done", outcome.reply
                    result.answered_by, result.spent = outcome.worker, outcome.spent
                else:
                    refused = outcome.refused or self._is_starved(position, result.log)
                    result.status, result.error = "refused" if refused else "failed", outcome.error
            except asyncio.CancelledError:
                result.status, result.error = "cancelled", self._why_stopped
                raise
            finally:
                self._end(position, result)
            ready = self._start_ready()

    def _begin(self, position: int, request: Request) -> StepResult:
        """Record that the step's call begins."""
        context, step = self._context, self._schedule.workflow.steps[position]
        if context.observe is not None:
            worker = context.pool[step.worker].profile.name
            context.observe(StepStarted(self._round, position, worker, step.subtask))
        return StepResult(messages=request.messages, started_s=context.elapsed())

    def _end(self, position: int, result: StepResult) -> None:
        """Record that the step's call has ended."""
        if result.status is None:  # A bug in Podium, whose exception escapes.
            return
        for attempt in result.log:
            if attempt.error_kind is not None:
                result.spent = attempt.spent + result.spent
        result.ended_s = self._context.elapsed()
        span = self._schedule.spans[position] = self._span(position, result)
        if self._context.observe is not None:
            self._context.observe(StepEnded(self._round, span))

    def _is_starved(self, position: int, attempts: Sequence[Attempt]) -> bool:
        """Whether the step failed only because a budget refused the steps that it reads."""
        lacks_input = bool(attempts) and attempts[-1].error_kind == "missing"
        unanswered = [
            self._schedule.spans.get(j)
            for j in self._schedule.reads[position]
            if self._schedule.response(j) is None
        ]
        return lacks_input and all(span is not None and span.status == "refused" for span in unanswered)

    def _make_listeners(self, position: int) -> MakeListeners | None:
        """A function that makes the listeners for each try of a step.

        None if the observer wants no text, or if the step's text may turn out not to be the answer.
        """
        observe = self._context.observe
        final = self._round == self._context.ledger.budget.rounds - 1
        if observe is None or not self._context.streams or not final or not self._schedule.is_last(position):
            return None

        attempts = count()

        def listeners() -> tuple[Callable[[str], None], Callable[[str], None]]:
            attempt, fences = next(attempts), FenceFilter(self._context.fence_mark)

            def on_text(text: str) -> None:
                if text := fences.add(text):
                    observe(StepText(self._round, position, text, attempt))

            return on_text, lambda text: observe(StepText(self._round, position, text, attempt, True))

        return listeners

    def _unstarted(self, position: int) -> Span:
        if position not in self._schedule.planned_steps:
            result = StepResult("skipped")
        elif self._schedule.is_unneeded(position):
            result = StepResult("skipped", _SPARED)
        else:
            result = StepResult("refused" if self._limit.expired() else "cancelled", self._why_stopped)
        return self._span(position, result)

    def _span(self, position: int, result: StepResult) -> Span:
        assert result.status is not None
        step = self._schedule.workflow.steps[position]
        return Span(
            position=position,
            worker=self._context.pool[step.worker].profile.name,
            subtask=step.subtask,
            reads=self._schedule.reads[position],
            waited=self._schedule.deciding_steps.get(position, ()),
            max_tokens=self._requests.max_tokens[position],
            status=result.status,
            messages=result.messages,
            reply=result.reply,
            answered_by=result.answered_by,
            spent=result.spent,
            started_s=result.started_s,
            ended_s=result.ended_s,
            attempts=tuple(result.log),
            error=result.error,
        )

    @property
    def _why_stopped(self) -> str:
        return self._context.ledger.time_is_up if self._limit.expired() else _GONE
