"""One workflow, run once: a step starts as soon as the steps that it reads are done.

`Schedule` decides which steps start. The workflow may come in parts while its plan is being written: its first steps by
`extend`, the whole by `complete`. No call outlives `run`, however `run` ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.calls.worker_call import Listeners
from podium.executor.early_stopping import answering_steps, find_early_stops
from podium.executor.echoed_fences import FenceFilter
from podium.executor.question_context import QuestionContext, StepEnded, StepStarted, StepText
from podium.executor.schedule import Schedule
from podium.executor.step_call import WorkerAnswer, call_with_fallbacks
from podium.executor.step_input import StepInput, build_messages
from podium.trace import Attempt, Reply, Span, SpanStatus
from podium.types import DEFAULT_OPTIONS, AnswerOptions, Message, Spent
from podium.workers.base import Request, Worker
from podium.workers.view import EarlierStep
from podium.workflow import Step, Workflow, live_steps

_GONE = "The question was cancelled."
_SPARED = "It was not called: no answer of it could change the vote."
_ABANDONED = "It was started while the plan was being written, and the plan does not need it."


@dataclass(slots=True)
class _StepResult:
    """How a step went, as far as it came."""

    status: SpanStatus | None = None
    """None: its call has not ended."""
    error: str | None = None
    messages: tuple[Message, ...] = ()
    started_s: float = 0.0
    ended_s: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)
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
        self._previous = previous
        self._shown: tuple[EarlierStep, ...] = ()
        self._earlier_calls = earlier_calls or {}
        self._answering: frozenset[int] = frozenset()
        self._max_tokens: tuple[int | None, ...] = ()
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

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span for every step of the workflow, in order, also for steps that did not start or end."""
        schedule = self._schedule
        return tuple(
            schedule.spans.get(position) or self._unstarted(position)
            for position in range(len(schedule.workflow.steps))
        )

    async def run(self) -> None:
        """Run every step that the last one needs. `spans` has the results, also after a cancellation. It ends once the
        workflow is whole."""
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
            self._max_tokens = (None,) * len(steps)
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
        needed = live_steps(whole)
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
            self._set_workflow(whole, needed, max_tokens, shown)
            self._more_steps.set()

    def abandon(self, position: int = 0) -> tuple[Span, ...]:
        """Count this step and later ones, which have ended, as abandoned. Returns all that are."""
        self.abandoned += tuple(
            span.model_copy(update={"error": _ABANDONED}) for span in self._schedule.forget_from(position)
        )
        return self.abandoned

    def _set_workflow(
        self,
        workflow: Workflow,
        to_run: Sequence[int],
        max_tokens: Sequence[int | None],
        shown: tuple[EarlierStep, ...],
    ) -> None:
        """Set the whole workflow. Its steps start with the next `start_ready`."""
        context = self._context
        early_stop = context.settings.early_stop
        if shown:
            self._previous, self._shown = None, shown
        before = [step.response for step in shown] if self._previous is None else [self._previous]
        self._schedule.set_workflow(
            workflow,
            to_run,
            find_early_stops(workflow, to_run, context, self._round) if early_stop else {},
            before,
        )
        workers = {p: context.pool[step.worker] for p, step in enumerate(workflow.steps)}
        self._answering = answering_steps(workflow, workers)
        self._max_tokens = (*max_tokens, *(None,) * len(workflow.steps))

    def _start(self, position: int) -> None:
        self._tasks[position] = self._group.create_task(self._follow([position]))

    async def _follow(self, ready: list[int]) -> None:
        """Run the steps in `ready`, then those that become ready when they end. A chain of steps stays in one task."""
        while ready:
            for position in ready[1:]:
                self._start(position)
            position = ready[0]
            worker = self._context.pool[self._schedule.workflow.steps[position].worker]
            request = self._request(position, worker)
            result = self._begin(position, request)
            try:
                outcome = await call_with_fallbacks(
                    self._context, worker, request, result.attempts, self._stream(position)
                )
                if isinstance(outcome, WorkerAnswer):
                    result.status, result.reply = "done", outcome.reply
                    result.answered_by, result.spent = outcome.worker, outcome.spent
                else:
                    refused = outcome.refused or self._is_starved(position, result.attempts)
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
        for attempt in result.attempts:
            if attempt.error_kind is not None:
                result.spent = attempt.spent + result.spent
        result.ended_s = self._context.elapsed()
        span = self._schedule.spans[position] = self._span(position, result)
        if self._context.observe is not None:
            self._context.observe(StepEnded(self._round, span))

    def _request(self, position: int, worker: Worker) -> Request:
        """The request that the step's worker gets."""
        context = self._context
        step_input = self._step_input(position)
        messages = build_messages(
            step_input,
            context.settings.layout,
            context.fence_mark,
            sees=worker.profile.sees,
        )
        return Request(
            messages,
            seed=f"{context.seed}/{self._round}/{position}",
            question_seed=context.seed,
            repeat=self._repeat(position),
            duplicate=self._count_asked(worker.profile.name, messages),
            sample=context.sample,
            fence_mark=context.fence_mark,
            missing=self._missing(position),
            structured=step_input.view(context.settings.layout),
            options=self._options(position),
        )

    def _options(self, position: int) -> AnswerOptions:
        """The caller's options for steps that may be the answer; the lower of the caller's and the plan's limit."""
        answers = position in self._answering
        options = self._context.question.options if answers else DEFAULT_OPTIONS
        planned = self._max_tokens[position]
        if planned is None or (options.max_tokens is not None and options.max_tokens <= planned):
            return options
        return options.model_copy(update={"max_tokens": planned})

    def _count_asked(self, worker: str, messages: tuple[Message, ...]) -> int:
        """Count that the worker is sent these messages. Returns how often it was sent them before."""
        asked, key = self._context.asked, (worker, messages)
        before = asked.get(key, 0)
        asked[key] = before + 1
        return before

    def _missing(self, position: int) -> tuple[int, ...]:
        """Indices of the responses that the step should see and that are missing."""
        previous, shown = self._before(position)
        first = int(previous is not None) + len(shown)
        read = enumerate(self._schedule.reads[position], start=first)
        return tuple(place for place, j in read if self._schedule.response(j) is None)

    def _is_starved(self, position: int, attempts: Sequence[Attempt]) -> bool:
        """Whether it failed only because a budget refused the steps that it reads."""
        lacks_input = bool(attempts) and attempts[-1].error_kind == "missing"
        unanswered = [
            self._schedule.spans.get(j)
            for j in self._schedule.reads[position]
            if self._schedule.response(j) is None
        ]
        return lacks_input and all(span is not None and span.status == "refused" for span in unanswered)

    def _stream(self, position: int) -> Listeners | None:
        """Returns the listeners for each try of a step.

        None: the observer wants no text, or the step's text may turn out not to be the answer.
        """
        observe = self._context.observe
        final = self._round == self._context.ledger.budget.rounds - 1
        if observe is None or not self._context.streams or not final or not self._schedule.is_last(position):
            return None

        def listeners(attempt: int) -> tuple[Callable[[str], None], Callable[[str], None]]:
            fences = FenceFilter(self._context.fence_mark)

            def on_text(text: str) -> None:
                if text := fences.add(text):
                    observe(StepText(self._round, position, text, attempt))

            return on_text, lambda text: observe(StepText(self._round, position, text, attempt, True))

        return listeners

    def _repeat(self, position: int) -> int:
        """How many steps before this one go to the same worker."""
        steps = self._schedule.workflow.steps
        worker = steps[position].worker
        repeat = self._earlier_calls.get(worker, 0)
        for earlier in self._schedule.to_run:
            repeat += earlier < position and steps[earlier].worker == worker
        return repeat

    def _step_input(self, position: int) -> StepInput:
        step = self._schedule.workflow.steps[position]
        earlier = tuple(
            EarlierStep(j, self._schedule.spans[j].subtask, response)
            for j in self._schedule.reads[position]
            if (response := self._schedule.response(j)) is not None
        )
        previous, shown = self._before(position)
        context = self._context
        return StepInput(
            context.question,
            step.subtask,
            shown + earlier,
            previous,
            context.settings.messages,
        )

    def _before(self, position: int) -> tuple[str | None, tuple[EarlierStep, ...]]:
        """The earlier rounds as the step sees them: the final response of the latest, or single steps."""
        sees = self._schedule.workflow.steps[position].access.sees_previous
        return (self._previous, self._shown) if sees else (None, ())

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
            max_tokens=self._max_tokens[position],
            status=result.status,
            messages=result.messages,
            reply=result.reply,
            answered_by=result.answered_by,
            spent=result.spent,
            started_s=result.started_s,
            ended_s=result.ended_s,
            attempts=tuple(result.attempts),
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
