"""One workflow, run once: a step starts as soon as the steps that it reads are done.

`Schedule` decides which steps start. The workflow may come in parts while its plan is being written: its first steps by
`extend`, the whole by `complete`. No call outlives `run`, however `run` ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from podium.calls import AttemptLog
from podium.calls.worker_call import MakeListeners
from podium.executor.early_stopping import find_early_stops
from podium.executor.echoed_fences import FenceFilter
from podium.executor.question_context import QuestionContext, StepEnded, StepStarted, StepText
from podium.executor.schedule import Schedule
from podium.executor.step_call import WorkerAnswer, call_with_fallbacks
from podium.executor.step_request import StepRequestBuilder
from podium.trace import Attempt, Reply, Span, SpanStatus
from podium.types import Message, Spent
from podium.workers.base import Request
from podium.workers.view import EarlierStep
from podium.workflow import Step, Workflow, live_steps

_GONE = "The question was cancelled."
_SPARED = "It was not called: no answer of it could change the vote."
_ABANDONED = "It was started while the plan was being written, and the plan does not need it."


@dataclass(slots=True)
class _StepResult:
    """How a step went, as far as it came."""

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
        round: from 0. A step's request has the seed "{seed of the question}/{round}/{position}".
        previous: the final response of the round before, if there is one.
        earlier_calls: how many steps of earlier rounds each worker of the pool had, by its number.
    """

    def __init__(
        self,
        context: QuestionContext,
        *,
        round: int = 0,
        previous: str | None = None,
        earlier_calls: Mapping[int, int] | None = None,
    ) -> None:
        self._context = context
        self._round = round
        self._group = asyncio.TaskGroup()
        self._limit = asyncio.timeout_at(context.ledger.deadline)
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        """The tasks of the steps that have started and not ended."""
        self._more_steps = asyncio.Event()
        """Set when more steps of the workflow are known than before."""
        self._whole = False
        """Whether the workflow is whole: it has been written, or there is none."""
        self._abandons = False
        """Whether steps are being cancelled that the whole workflow does not need."""
        self.abandoned: tuple[Span, ...] = ()
        """Steps that were started before the workflow was whole, and that it has not, or has otherwise."""
        self._schedule = Schedule()
        self._requests = StepRequestBuilder(
            context, self._schedule, round=round, previous=previous, earlier_calls=earlier_calls or {}
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span for every step of the workflow, in order, also for steps that did not start or end."""
        schedule = self._schedule
        return tuple(
            schedule.spans.get(position) or self._unstarted(position)
            for position in range(len(schedule.workflow.steps))
        )

    async def run(self) -> None:
        """Run every step that the last one needs, or all with `run_all`. `spans` has the results, also after a
        cancellation. It ends once the workflow is whole."""
        try:
            async with self._limit, self._group:
                while not self._whole:
                    await self._more_steps.wait()
                    self._more_steps.clear()
                    for position in self._schedule.start_ready():
                        self._start(position)
                await self._follow(self._schedule.start_ready())
        except TimeoutError:  # The budget's. A worker's is a failed attempt and does not come here.
            if not self._limit.expired():
                raise

    def extend(self, steps: tuple[Step, ...]) -> None:
        """Start the first steps of a workflow that is still being written, and that will have at least one more.

        Steps that do not continue those that are known are left for `complete`.
        """
        known = len(self._schedule.workflow.steps)
        if not self._whole and len(steps) > known == self._schedule.common_with(steps):
            self._schedule.set_workflow(Workflow(steps), range(len(steps)))
            self._requests.max_tokens = (None,) * len(steps)
            self._more_steps.set()

    async def complete(
        self,
        workflow: Workflow | None,
        max_tokens: Sequence[int | None] = (),
        shown: tuple[EarlierStep, ...] = (),
    ) -> None:
        """The workflow is written. Steps that were started and that it does not have or need are cancelled.

        Args:
            workflow: the whole one, checked: it names workers of the pool and reads earlier steps only. None: there is
                none to run.
            max_tokens: the plan's limit of output tokens for each step, None for none; steps beyond its end have none.
                It does not hold for steps that were started before.
            shown: steps of earlier rounds that are shown in place of the final response of the round before.
        """
        whole = workflow or Workflow(())
        # The last step is asked in a way of its own, so it is not taken from what was started.
        same = self._schedule.common_with(whole.steps[:-1])
        run_all = self._context.settings.run_all
        needed = range(len(whole.steps)) if run_all else live_steps(whole)
        cancelled = [task for p, task in self._tasks.items() if p >= same or p not in needed]
        self._whole = self._abandons = True
        for task in cancelled:
            task.cancel()
        try:
            await _ended(cancelled)
        finally:
            self._abandons = False
            # A task that was cancelled before it began has not left by itself.
            self._tasks = {p: task for p, task in self._tasks.items() if task not in cancelled}
            self.abandon(same)
            self._requests.set_workflow(whole, max_tokens, shown)
            early_stop = self._context.settings.early_stop
            self._schedule.set_workflow(
                whole,
                needed,
                find_early_stops(whole, needed, self._context, self._round) if early_stop else {},
                self._requests.earlier_responses,
            )
            self._more_steps.set()

    def abandon(self, position: int = 0) -> tuple[Span, ...]:
        """Count this step and later ones, which have ended, as abandoned. Returns all that are."""
        self.abandoned += tuple(
            span.model_copy(update={"error": _ABANDONED}) for span in self._schedule.forget_from(position)
        )
        return self.abandoned

    def _start(self, position: int) -> None:
        self._tasks[position] = self._group.create_task(self._follow([position]))

    async def _follow(self, ready: list[int]) -> None:
        """Run the steps in `ready`, then those that become ready when they end. A chain of steps stays in one task."""
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
            ready = self._schedule.start_ready()

    def _begin(self, position: int, request: Request) -> _StepResult:
        """The step's call is about to be made in this task."""
        context, step = self._context, self._schedule.workflow.steps[position]
        if context.observe is not None:
            worker = context.pool[step.worker].profile.name
            context.observe(StepStarted(self._round, position, worker, step.subtask))
        task = asyncio.current_task()
        assert task is not None
        self._tasks[position] = task
        return _StepResult(messages=request.messages, started_s=context.elapsed())

    def _end(self, position: int, result: _StepResult) -> None:
        """The step's call has ended."""
        del self._tasks[position]
        if result.status is None:  # A bug of ours, which escapes.
            return
        for attempt in result.log:
            if attempt.error_kind is not None:
                result.spent = attempt.spent + result.spent
        result.ended_s = self._context.elapsed()
        span = self._schedule.spans[position] = self._span(position, result)
        if self._context.observe is not None:
            self._context.observe(StepEnded(self._round, span))

    def _is_starved(self, position: int, attempts: Sequence[Attempt]) -> bool:
        """Whether it failed only because a budget refused the steps that it reads."""
        lacks_input = bool(attempts) and attempts[-1].error_kind == "missing"
        unanswered = [
            self._schedule.spans.get(j)
            for j in self._schedule.reads[position]
            if self._schedule.response(j) is None
        ]
        return lacks_input and all(span is not None and span.status == "refused" for span in unanswered)

    def _make_listeners(self, position: int) -> MakeListeners | None:
        """What makes the listeners for each try of a step.

        None: the observer wants no text, or the step's text may turn out not to be the answer.
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
        if position not in self._schedule.to_run:
            result = _StepResult("skipped")
        elif self._schedule.is_spared(position):
            result = _StepResult("skipped", _SPARED)
        else:
            result = _StepResult("refused" if self._limit.expired() else "cancelled", self._why_stopped)
        return self._span(position, result)

    def _span(self, position: int, result: _StepResult) -> Span:
        assert result.status is not None
        step = self._schedule.workflow.steps[position]
        return Span(
            position=position,
            worker=self._context.pool[step.worker].profile.name,
            subtask=step.subtask,
            reads=self._schedule.reads[position],
            waited=self._schedule.waited.get(position, ()),
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
        if self._abandons:
            return _ABANDONED
        return self._context.ledger.time_is_up if self._limit.expired() else _GONE


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
