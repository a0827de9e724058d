"""One workflow, run once: a step starts as soon as the steps that it reads are done.

`Schedule` decides which steps start, and `step_call` calls their workers. No call outlives `run`, however `run` ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any

from podium.calls import AttemptLog
from podium.calls.worker_call import Listeners, MakeListeners
from podium.executor.early_stopping import answering_steps, find_early_stops
from podium.executor.question_context import QuestionContext, RoundContext, StepEnded, StepStarted, StepText
from podium.executor.schedule import Schedule
from podium.executor.step_call import FailedCall, WorkerAnswer, call_with_fallbacks
from podium.executor.step_input import build_messages
from podium.text.fencing import FenceFilter
from podium.trace import Attempt, Span, SpanStatus
from podium.types import DEFAULT_OPTIONS, AnswerOptions, Message, Spent
from podium.workers.base import Request, Worker
from podium.workers.view import EarlierStep, WorkerView
from podium.workflow import Workflow, needed_steps

ABANDONED = "It was started while the plan was being written, and the plan does not need it."
_GONE = "The question was cancelled."
_SPARED = "It was not called: no answer of it could change the vote."


@dataclass(slots=True)
class StartedStep:
    """A step that began to run while its plan was being written (`EarlyStart`)."""

    task: asyncio.Task[None]
    span: Span | None = None
    """How it ended. None while it runs."""
    is_unneeded: bool = False
    """Whether it is being cancelled, since the plan does not need it."""


@dataclass(slots=True)
class RunningStep:
    """A step whose worker is being called."""

    position: int
    messages: tuple[Message, ...]
    started_s: float
    log: AttemptLog
    call: Awaitable[WorkerAnswer | FailedCall]
    """The call of the worker, to be awaited once."""
    outcome: WorkerAnswer | FailedCall | None = None
    """The result of the call. None while it is in flight, and if it was cancelled."""


class Execution:
    """One workflow, run for one question.

    Args:
        workflow: a workflow that was checked: it names workers of the pool, and its steps read only earlier steps.
        max_tokens: the plan's limit of output tokens for each step. None sets no limit. Steps beyond the end of the
            sequence have no limit either.
        shown: steps of earlier rounds that a step reads in place of the final response of the round before.
        started_steps: steps of the workflow that run already, by position.
        is_draft: whether the workflow is only the beginning of one, so that no step of it gives the answer.
    """

    def __init__(
        self,
        context: QuestionContext,
        workflow: Workflow,
        round_context: RoundContext = RoundContext(),
        *,
        max_tokens: Sequence[int | None] = (),
        shown: tuple[EarlierStep, ...] = (),
        started_steps: Mapping[int, StartedStep] = MappingProxyType({}),
        is_draft: bool = False,
    ) -> None:
        self._context = context
        self._workflow = workflow
        self._round_context = round_context
        self._max_tokens = (*max_tokens, *(None,) * len(workflow.steps))
        """The plan's limit of output tokens for each step, and at least one entry for each."""
        self._shown = shown
        self._previous = None if shown else round_context.response
        self._started_steps = started_steps
        self._answering = frozenset[int]() if is_draft else answering_steps(workflow, context.pool)
        runs_all = is_draft or context.settings.run_all
        planned = range(len(workflow.steps)) if runs_all else needed_steps(workflow)
        early_stops = {}
        if context.settings.early_stop:
            early_stops = find_early_stops(workflow, planned, context, round_context.number)
        earlier = [step.response for step in shown] if self._previous is None else [self._previous]
        self._schedule = Schedule(workflow, planned, early_stops, earlier)
        self._group = asyncio.TaskGroup()
        self._limit = asyncio.timeout_at(context.ledger.deadline)

    async def run(self) -> None:
        """Run each step that the last step needs, or with `run_all` each step. `spans` has the results, also after a
        cancellation."""
        try:
            async with self._limit, self._group:
                await self._run_steps(self._schedule.get_ready())
        except TimeoutError:  # The budget's time is up. A worker's timeout is a failed attempt.
            if not self._limit.expired():
                raise

    async def _run_steps(self, ready: list[int]) -> None:
        """Run the steps in `ready`, then the steps that become ready after them. A chain of steps stays in one task."""
        while ready:
            for position in ready[1:]:
                self._group.create_task(self._run_steps([position]))
            if (started := self._started_steps.get(ready[0])) is None:
                step = self.begin(ready[0])
                try:
                    step.outcome = await step.call
                finally:
                    self.end(step)
            else:
                await asyncio.wait([started.task])
                if started.span is not None:
                    self._schedule.spans[ready[0]] = started.span
            ready = self._schedule.get_ready()

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span for each step of the workflow, in order, including steps that have not started or not ended."""
        positions = range(len(self._workflow.steps))
        return tuple(self.span_of(position) or self._unstarted(position) for position in positions)

    def span_of(self, position: int) -> Span | None:
        """The span of a step. None if the step has not ended."""
        if (started := self._started_steps.get(position)) is not None:
            return started.span
        return self._schedule.spans.get(position)

    def begin(self, position: int) -> RunningStep:
        """Begin a step. The caller awaits the call of its worker, and ends the step whatever happens."""
        context, step, log = self._context, self._workflow.steps[position], AttemptLog()
        worker = context.pool[step.worker]
        request = self._request(position, worker)
        context.on_event(StepStarted(self._round_context.number, position, worker.profile.name, step.subtask))
        call = call_with_fallbacks(context, worker, request, log, self._make_listeners(position))
        return RunningStep(position, request.messages, context.elapsed(), log, call)

    def end(self, running: RunningStep) -> None:
        """Record the span of a step whose call has ended. A call without an outcome was cancelled."""
        position, log = running.position, running.log
        match running.outcome:
            case WorkerAnswer(worker=name, reply=reply, spent=spent):
                self._record(running, "done", spent, reply=reply, answered_by=name)
            case FailedCall(status, error):
                self._record(running, "refused" if self._is_starved(position, log) else status, error=error)
            case None:
                started = self._started_steps.get(position)
                why = ABANDONED if started is not None and started.is_unneeded else self._why_stopped
                self._record(running, "cancelled", error=why)

    def _record(
        self, running: RunningStep, status: SpanStatus, spent: Spent = Spent(), **result: Any
    ) -> None:
        """Record how a step's call has ended. `spent` is without the failed attempts."""
        position = running.position
        for attempt in running.log:
            if attempt.error_kind is not None:
                spent = attempt.spent + spent
        span = self._span(
            position,
            status,
            messages=running.messages,
            started_s=running.started_s,
            ended_s=self._context.elapsed(),
            attempts=tuple(running.log),
            spent=spent,
            **result,
        )
        if (started := self._started_steps.get(position)) is None:
            self._schedule.spans[position] = span
        else:
            started.span = span
        self._context.on_event(StepEnded(self._round_context.number, span))

    def _request(self, position: int, worker: Worker) -> Request:
        context, steps = self._context, self._workflow.steps
        step, reads = steps[position], self._schedule.reads[position]
        previous, shown = (self._previous, self._shown) if step.access.sees_previous else (None, ())
        earlier, missing = list(shown), list[int]()
        for index, j in enumerate(reads, start=int(previous is not None) + len(shown)):
            read = self.span_of(j)
            if read is None or read.response is None:
                missing.append(index)
            else:
                earlier.append(EarlierStep(j, read.subtask, read.response))
        settings, question = context.settings, context.question
        view = WorkerView(question.text, step.subtask, tuple(earlier), previous)
        messages = build_messages(
            view,
            settings.layout,
            context.fence_mark,
            history=question.history,
            images=question.images if worker.profile.sees else None,
            conversation=context.conversation,
        )
        sent = (worker.profile.name, messages)
        duplicate_index = context.requests.count(sent)
        context.requests.append(sent)
        calls = self._round_context.steps_by_worker.get(step.worker, 0)
        for j in self._schedule.planned_steps:
            calls += j < position and steps[j].worker == step.worker
        return Request(
            messages,
            seed=f"{context.seed}/{self._round_context.number}/{position}",
            question_seed=context.seed,
            earlier_calls=calls,
            duplicate_index=duplicate_index,
            sample=context.sample,
            fence_mark=context.fence_mark,
            missing_responses=tuple(missing),
            executor_view=None if settings.layout == "plain" else view,
            options=self._options(position),
        )

    def _options(self, position: int) -> AnswerOptions:
        """The caller's options if the step may give the answer, with the lower of the caller's and the plan's limit."""
        options = self._context.question.options if position in self._answering else DEFAULT_OPTIONS
        planned = self._max_tokens[position]
        if planned is None or (options.max_tokens is not None and options.max_tokens <= planned):
            return options
        return options.model_copy(update={"max_tokens": planned})

    def _is_starved(self, position: int, attempts: Sequence[Attempt]) -> bool:
        """Whether the step failed only because a budget refused the steps that it reads."""
        lacks_input = bool(attempts) and attempts[-1].error_kind == "missing"
        reads = [self.span_of(j) for j in self._schedule.reads[position]]
        return lacks_input and all(
            read is not None and (read.response is not None or read.status == "refused") for read in reads
        )

    def _make_listeners(self, position: int) -> MakeListeners | None:
        """A function that makes the listeners for each try of a step. None if nobody wants the text, or if it may turn
        out not to be the answer."""
        context, round = self._context, self._round_context.number
        is_last = position in self._answering and position == len(self._workflow.steps) - 1
        if not (context.streams and is_last and round == context.ledger.budget.rounds - 1):
            return None
        attempts = count()

        def listeners() -> Listeners:
            attempt, fences = next(attempts), FenceFilter(context.fence_mark)

            def on_text(text: str) -> None:
                if text := fences.add(text):
                    context.on_event(StepText(round, position, text, attempt))

            return Listeners(
                on_text,
                lambda text: context.on_event(StepText(round, position, text, attempt, reasoning=True)),
            )

        return listeners

    def _unstarted(self, position: int) -> Span:
        if position not in self._schedule.planned_steps:
            return self._span(position, "skipped")
        if self._schedule.is_unneeded(position):
            return self._span(position, "skipped", error=_SPARED)
        why = self._why_stopped
        return self._span(position, "cancelled" if why == _GONE else "refused", error=why)

    def _span(self, position: int, status: SpanStatus, **result: Any) -> Span:
        step = self._workflow.steps[position]
        return Span(
            position=position,
            worker=self._context.pool[step.worker].profile.name,
            subtask=step.subtask,
            reads=self._schedule.reads[position],
            waited=self._schedule.deciding_steps.get(position, ()),
            max_tokens=self._max_tokens[position],
            status=status,
            **result,
        )

    @property
    def _why_stopped(self) -> str:
        ledger, now = self._context.ledger, asyncio.get_running_loop().time()
        return _GONE if ledger.deadline is None or now < ledger.deadline else ledger.time_is_up
