"""One workflow, run once: a step starts as soon as the steps that it reads are done.

The first steps may start while a planner still writes the others. `Schedule` decides which steps start. No call
outlives `run`, however `run` ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, Literal

from podium.calls import AttemptLog
from podium.calls.worker_call import Listeners, MakeListeners
from podium.executor.early_stopping import answering_steps, find_early_stops
from podium.executor.echoed_fences import FenceFilter
from podium.executor.question_context import (
    ExecutionSettings,
    QuestionContext,
    RoundContext,
    StepEnded,
    StepEvent,
    StepStarted,
    StepText,
)
from podium.executor.schedule import Schedule
from podium.executor.step_call import WorkerAnswer, call_with_fallbacks
from podium.executor.step_input import build_messages
from podium.trace import Attempt, Span, SpanStatus
from podium.types import DEFAULT_OPTIONS, AnswerOptions, Message, Question, Spent
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool
from podium.workers.view import EarlierStep, WorkerView
from podium.workflow import Step, Workflow, needed_steps

_ABANDONED = "It was started while the plan was being written, and the plan does not need it."
_GONE = "The question was cancelled."
_SPARED = "It was not called: no answer of it could change the vote."


class Execution:
    """One workflow, run for one question.

    Args:
        workflow: a workflow that was checked: it names workers of the pool, and its steps read only earlier steps. None
            if its plan is still being written: then `extend` adds the first steps, and `complete` the whole workflow.
        max_tokens: the plan's limit of output tokens for each step. None sets no limit. Steps beyond the end of the
            sequence have no limit either.
        shown: steps of earlier rounds that a step reads in place of the final response of the round before.
    """

    def __init__(
        self,
        context: QuestionContext,
        workflow: Workflow | None,
        round_context: RoundContext = RoundContext(),
        *,
        max_tokens: Sequence[int | None] = (),
        shown: tuple[EarlierStep, ...] = (),
    ) -> None:
        self._context = context
        self._round_context = round_context
        self._sent = [*round_context.requests]
        """The worker and the messages of each request of this question."""
        self._group = asyncio.TaskGroup()
        self._limit = asyncio.timeout_at(context.ledger.deadline)
        self._schedule = Schedule()
        self._max_tokens: Sequence[int | None] = ()
        """The plan's limit of output tokens for each step, and at least one entry for each."""
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """The tasks of the steps that have started and not ended."""
        self._state: Literal["arriving", "abandoning", "whole"] = "arriving" if workflow is None else "whole"
        """Whether steps are still arriving, or unneeded steps are being cancelled, or the whole workflow is known."""
        self._news = asyncio.Event()
        """Set when steps have arrived, or the workflow is whole."""
        self._held_events: list[StepEvent] | None = [] if workflow is None else None
        """Events that make no sense before the event of the plan. None once events are sent at once."""
        self.abandoned: tuple[Span, ...] = ()
        """Steps that were started although the whole workflow does not need them, or changes them."""
        self._set_workflow(workflow or Workflow(()), max_tokens, shown)

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span for each step of the workflow, in order, including steps that have not started or not ended."""
        schedule = self._schedule
        return tuple(
            schedule.spans.get(position) or self._unstarted(position)
            for position in range(len(schedule.workflow.steps))
        )

    async def run(self) -> None:
        """Run each step that the last step needs, once it is known. With `run_all`, run all steps. `spans` has the
        results, also after a cancellation."""
        try:
            async with self._limit, self._group:
                while self._state != "whole":
                    await self._news.wait()
                    self._news.clear()
                    for position in self._get_ready():
                        self._start(position)
                await self._run_steps(self._get_ready())
        except TimeoutError:  # The budget's time is up. A worker's timeout is a failed attempt.
            if not self._limit.expired():
                raise

    def extend(self, steps: tuple[Step, ...]) -> None:
        """Start the first steps of the workflow, which will have at least one more step. Steps that do not continue the
        known steps are left for `complete`."""
        known = len(self._schedule.workflow.steps)
        if self._state == "arriving" and len(steps) > known == self._schedule.common_prefix_length(steps):
            self._schedule.set_workflow(Workflow(steps), range(len(steps)))
            self._max_tokens = (None,) * len(steps)
            self._news.set()

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
        self._state = "abandoning"
        for task in cancelled:
            task.cancel()
        try:
            await _wait_until_ended(cancelled)
        finally:
            # A task that was cancelled before it began has not removed itself.
            self._tasks = {p: task for p, task in self._tasks.items() if task not in cancelled}
            self.abandon(same)
            self._set_workflow(whole, max_tokens, shown)
            self._state = "whole"
            self._news.set()

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
        elif self._context.observe is not None:
            self._context.observe(event)

    def _needed(self, workflow: Workflow) -> Sequence[int]:
        return range(len(workflow.steps)) if self._context.settings.run_all else needed_steps(workflow)

    def _set_workflow(
        self, workflow: Workflow, max_tokens: Sequence[int | None], shown: tuple[EarlierStep, ...]
    ) -> None:
        context, needed = self._context, self._needed(workflow)
        self._answering = answering_steps(workflow, context.pool)
        self._max_tokens = (*max_tokens, *(None,) * len(workflow.steps))
        self._shown = shown
        self._previous = None if shown else self._round_context.response
        early_stops = {}
        if context.settings.early_stop:
            early_stops = find_early_stops(workflow, needed, context, self._round_context.count)
        earlier = [step.response for step in shown] if self._previous is None else [self._previous]
        self._schedule.set_workflow(workflow, needed, early_stops, earlier)

    def _get_ready(self) -> list[int]:
        # While steps are being cancelled, the schedule still has the steps that the whole workflow does not have.
        return [] if self._state == "abandoning" else self._schedule.get_ready()

    def _start(self, position: int) -> None:
        self._tasks[position] = self._group.create_task(self._run_steps([position]))

    async def _run_steps(self, ready: list[int]) -> None:
        """Run the steps in `ready`, then the steps that become ready after them. A chain of steps stays in one task."""
        task = asyncio.current_task()
        assert task is not None
        while ready:
            for position in ready[1:]:
                self._start(position)
            position = ready[0]
            step = self._schedule.workflow.steps[position]
            worker = self._context.pool[step.worker]
            request = self._request(position, worker)
            self._tasks[position] = task
            self._observe(StepStarted(self._round_context.count, position, worker.profile.name, step.subtask))
            log = AttemptLog()
            end = partial(self._end, position, request.messages, self._context.elapsed(), log)
            try:
                outcome = await call_with_fallbacks(
                    self._context, worker, request, log, self._make_listeners(position)
                )
            except asyncio.CancelledError:
                end("cancelled", error=self._why_stopped)
                raise
            if isinstance(outcome, WorkerAnswer):
                end("done", reply=outcome.reply, answered_by=outcome.worker, spent=outcome.spent)
            else:
                refused = outcome.refused or self._is_starved(position, log)
                end("refused" if refused else "failed", error=outcome.error)
            ready = self._get_ready()

    def _end(
        self,
        position: int,
        messages: tuple[Message, ...],
        started_s: float,
        log: AttemptLog,
        status: SpanStatus,
        *,
        spent: Spent = Spent(),
        **outcome: Any,
    ) -> None:
        """Record how the step's call has ended. `spent` is without the failed attempts."""
        del self._tasks[position]
        for attempt in log:
            if attempt.error_kind is not None:
                spent = attempt.spent + spent
        span = self._schedule.spans[position] = self._span(
            position,
            status,
            messages=messages,
            started_s=started_s,
            ended_s=self._context.elapsed(),
            attempts=tuple(log),
            spent=spent,
            **outcome,
        )
        self._observe(StepEnded(self._round_context.count, span))

    def _request(self, position: int, worker: Worker) -> Request:
        context, schedule = self._context, self._schedule
        step, reads = schedule.workflow.steps[position], schedule.reads[position]
        previous, shown = (self._previous, self._shown) if step.access.sees_previous else (None, ())
        earlier, missing = list(shown), list[int]()
        for index, j in enumerate(reads, start=int(previous is not None) + len(shown)):
            response = schedule.response(j)
            if response is None:
                missing.append(index)
            else:
                earlier.append(EarlierStep(j, schedule.spans[j].subtask, response))
        settings, question = context.settings, context.question
        view = WorkerView(question.text, step.subtask, tuple(earlier), previous)
        messages = build_messages(
            view,
            settings.layout,
            context.fence_mark,
            history=question.history,
            images=question.images if worker.profile.sees else None,
            conversation=settings.messages,
        )
        sent = (worker.profile.name, messages)
        duplicates = self._sent.count(sent)
        self._sent.append(sent)
        calls = self._round_context.calls.get(step.worker, 0)
        for j in schedule.planned_steps:
            calls += j < position and schedule.workflow.steps[j].worker == step.worker
        return Request(
            messages,
            seed=f"{context.seed}/{self._round_context.count}/{position}",
            question_seed=context.seed,
            earlier_calls=calls,
            repeat=duplicates,
            sample=context.sample,
            fence_mark=context.fence_mark,
            missing=tuple(missing),
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
        unanswered = [
            self._schedule.spans.get(j)
            for j in self._schedule.reads[position]
            if self._schedule.response(j) is None
        ]
        return lacks_input and all(span is not None and span.status == "refused" for span in unanswered)

    def _make_listeners(self, position: int) -> MakeListeners | None:
        """A function that makes the listeners for each try of a step. None if the observer wants no text, or if the
        step's text may turn out not to be the answer."""
        context, round = self._context, self._round_context.count
        is_final = self._state == "whole" and round == context.ledger.budget.rounds - 1
        wants_text = context.observe is not None and context.streams
        if not wants_text or not is_final or not self._schedule.is_last(position):
            return None
        attempts = count()

        def listeners() -> Listeners:
            attempt, fences = next(attempts), FenceFilter(context.fence_mark)

            def on_text(text: str) -> None:
                if text := fences.add(text):
                    self._observe(StepText(round, position, text, attempt))

            return Listeners(
                on_text, lambda text: self._observe(StepText(round, position, text, attempt, reasoning=True))
            )

        return listeners

    def _unstarted(self, position: int) -> Span:
        if position not in self._schedule.planned_steps:
            return self._span(position, "skipped")
        if self._schedule.is_unneeded(position):
            return self._span(position, "skipped", error=_SPARED)
        status: SpanStatus = "refused" if self._limit.expired() else "cancelled"
        return self._span(position, status, error=self._why_stopped)

    def _span(self, position: int, status: SpanStatus, **result: Any) -> Span:
        step = self._schedule.workflow.steps[position]
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
        if self._state == "abandoning":
            return _ABANDONED
        return self._context.ledger.time_is_up if self._limit.expired() else _GONE


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
