"""One workflow, run once: a step starts as soon as the steps that it reads are done.

It does not know the planner. No call outlives `run`, however `run` ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from podium.calls.worker_call import Listeners
from podium.executor.early_stopping import EarlyStopping, answering_steps, find_early_stops
from podium.executor.question_context import QuestionContext, StepEnded, StepStarted, StepText
from podium.executor.step_call import WorkerAnswer, call_with_fallbacks
from podium.executor.step_input import StepInput, build_messages
from podium.trace import Attempt, Span
from podium.types import DEFAULT_OPTIONS, AnswerOptions, Message, Spent
from podium.workers.base import Request, Worker
from podium.workers.view import EarlierStep
from podium.workflow import Workflow, live_steps

_GONE = "The question was cancelled."
_NOT_NEEDED = "It was not called: no answer of it could change the vote."


class Execution:
    """One workflow, run for one question.

    Args:
        question_context: the question, its pool and its budget.
        workflow: checked: it names workers of the pool and reads earlier steps only.
        round: from 0. A step's request has the seed "{seed of the question}/{round}/{position}".
        previous: the final response of the round before, if there is one.
        shown: steps of earlier rounds that are shown in place of `previous`.
        earlier_calls: how many steps of earlier rounds each worker of the pool had, by its number.
        max_tokens: the plan's limit of output tokens for each step, None for none; steps beyond its end have none.
    """

    def __init__(
        self,
        question_context: QuestionContext,
        workflow: Workflow,
        *,
        round: int = 0,
        previous: str | None = None,
        shown: tuple[EarlierStep, ...] = (),
        earlier_calls: Mapping[int, int] | None = None,
        max_tokens: Sequence[int | None] = (),
    ) -> None:
        self._question_context = question_context
        self._round = round
        self._previous = None if shown else previous
        self._shown = shown
        self._earlier_calls = earlier_calls or {}
        self._spans: dict[int, Span] = {}
        self._started: set[int] = set()
        self._waited: dict[int, tuple[int, ...]] = {}
        self._group = asyncio.TaskGroup()
        self._limit = asyncio.timeout_at(question_context.ledger.deadline)
        self._plan_to_run(workflow, self._needed(workflow), max_tokens)

    def _plan_to_run(
        self, workflow: Workflow, to_run: Sequence[int], max_tokens: Sequence[int | None] = ()
    ) -> None:
        """Take these steps of a workflow as those to run."""
        context, count = self._question_context, len(workflow.steps)
        self._workflow, self._to_run = workflow, to_run
        self._reads = tuple(workflow.reads(position) for position in range(count))
        workers = {p: context.pool[step.worker] for p, step in enumerate(workflow.steps)}
        self._answering = answering_steps(workflow, workers)
        self._early_stops = (
            find_early_stops(workflow, to_run, context, self._round) if context.settings.early_stop else {}
        )
        self._max_tokens = (*max_tokens, *(None,) * count)
        self._wanted = set[int]() if self._early_stops else set(to_run)

    def _needed(self, workflow: Workflow) -> Sequence[int]:
        """The steps that the last one needs, or all with `run_all`."""
        run_all = self._question_context.settings.run_all
        return range(len(workflow.steps)) if run_all else live_steps(workflow)

    async def run(self) -> None:
        """Run every step that the last one needs, or all steps with `run_all`. `spans` has the results, also after a
        cancellation."""
        try:
            async with self._limit, self._group:
                await self._follow(self._ready())
        except TimeoutError:  # The budget's. A worker's is a failed attempt and does not come here.
            if not self._limit.expired():
                raise

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span for every step of the workflow, in order, also for steps that did not start or end."""
        return tuple(
            self._spans.get(position) or self._unstarted(position)
            for position in range(len(self._workflow.steps))
        )

    async def _follow(self, ready: list[int]) -> None:
        """Run the steps in `ready`, then those that become ready when they end. A chain of steps stays in one task."""
        while ready:
            for position in ready[1:]:
                self._start(position)
            position, attempts = ready[0], list[Attempt]()
            worker = self._question_context.pool[self._workflow.steps[position].worker]
            request = self._request(position, worker)
            with self._recorded(position, worker, request, attempts) as result:
                outcome = await call_with_fallbacks(
                    self._question_context, worker, request, attempts, self._stream(position)
                )
                if isinstance(outcome, WorkerAnswer):
                    result.update(
                        status="done",
                        reply=outcome.reply,
                        answered_by=outcome.worker,
                        spent=outcome.spent,
                    )
                else:
                    refused = outcome.refused or self._is_starved(position, attempts)
                    result.update(status="refused" if refused else "failed", error=outcome.error)
            ready = self._ready()

    def _start(self, position: int) -> asyncio.Task[None]:
        return self._group.create_task(self._follow([position]))

    def _ready(self) -> list[int]:
        """The steps that start now: all that they read is done, and no vote defers them. Marks them as started."""
        if self._early_stops:
            self._continue_votes()
        ready = [p for p in self._to_run if p in self._wanted and p not in self._started and self._has_all(p)]
        self._started.update(ready)
        return ready

    def _continue_votes(self) -> None:
        """For each vote whose started steps have all ended, choose the steps that start next."""
        before = [step.response for step in self._shown] if self._previous is None else [self._previous]
        waited_for = [early_stop.next_steps(before, self._spans) for early_stop in self._early_stops.values()]
        wanted = self._needed_steps(EarlyStopping.defers)
        waited = tuple(sorted({j for positions in waited_for for j in positions}))
        self._waited.update((position, waited) for position in wanted - self._wanted)
        self._wanted = wanted

    def _has_all(self, position: int) -> bool:
        """Whether all steps that it reads have ended. A vote does not wait for steps that it skips."""
        early_stop = self._early_stops.get(position)
        return all(
            j in self._spans or (early_stop is not None and early_stop.skips(j))
            for j in self._reads[position]
        )

    def _needed_steps(self, is_left_out: Callable[[EarlyStopping, int], bool]) -> set[int]:
        """The last step, and every step that it needs, directly or through others.

        Args:
            is_left_out: whether a vote does without a step that it reads.
        """
        if not self._early_stops:
            return set(self._to_run)
        found: set[int] = set()
        for position in reversed(self._to_run):
            readers = [k for k in self._to_run if position in self._reads[k]]
            if not readers or any(
                k in found and not (k in self._early_stops and is_left_out(self._early_stops[k], position))
                for k in readers
            ):
                found.add(position)
        return found

    def _request(self, position: int, worker: Worker) -> Request:
        """What the step's worker is sent."""
        question_context = self._question_context
        context = self._context(position)
        messages = build_messages(
            context, question_context.settings.context, question_context.fence_mark, sees=worker.profile.sees
        )
        return Request(
            messages,
            seed=f"{question_context.seed}/{self._round}/{position}",
            question_seed=question_context.seed,
            repeat=self._repeat(position),
            duplicate=self._count_asked(worker.profile.name, messages),
            sample=question_context.sample,
            fence_mark=question_context.fence_mark,
            missing=self._missing(position),
            structured=context.view(question_context.settings.context),
            options=self._options(position),
        )

    @contextmanager
    def _recorded(
        self, position: int, worker: Worker, request: Request, attempts: Sequence[Attempt]
    ) -> Iterator[dict[str, Any]]:
        """The step's call is made in the block, which adds how it ended to the fields of the step's span."""
        question_context, step = self._question_context, self._workflow.steps[position]
        if question_context.observe is not None:
            question_context.observe(StepStarted(self._round, position, worker.profile.name, step.subtask))
        result: dict[str, Any] = {"messages": request.messages, "started_s": question_context.elapsed()}
        try:
            yield result
        except asyncio.CancelledError:
            result |= {"status": "cancelled", "error": self._why_stopped}
            raise
        finally:
            for attempt in attempts:
                if attempt.error_kind is not None:
                    result["spent"] = attempt.spent + result.get("spent", Spent())
            if "status" in result:  # Missing after a bug of ours, which escapes.
                self._record(
                    self._span(
                        position, attempts=tuple(attempts), ended_s=question_context.elapsed(), **result
                    )
                )

    def _options(self, position: int) -> AnswerOptions:
        """The caller's options for steps that may be the answer; the lower of the caller's and the plan's limit."""
        answers = position in self._answering
        options = self._question_context.question.options if answers else DEFAULT_OPTIONS
        planned = self._max_tokens[position]
        if planned is None or (options.max_tokens is not None and options.max_tokens <= planned):
            return options
        return options.model_copy(update={"max_tokens": planned})

    def _count_asked(self, worker: str, messages: tuple[Message, ...]) -> int:
        """Count that the worker is sent these messages. Returns how often it was sent them before."""
        asked, key = self._question_context.asked, (worker, messages)
        before = asked.get(key, 0)
        asked[key] = before + 1
        return before

    def _response(self, position: int) -> str | None:
        """The response of a step; None: it has none."""
        span = self._spans.get(position)
        return None if span is None else span.response

    def _missing(self, position: int) -> tuple[int, ...]:
        """Indices of the responses that the step should see and that are missing."""
        previous, shown = self._before(position)
        first = int(previous is not None) + len(shown)
        read = enumerate(self._reads[position], start=first)
        return tuple(place for place, j in read if self._response(j) is None)

    def _is_starved(self, position: int, attempts: Sequence[Attempt]) -> bool:
        """Whether it failed only because a budget refused the steps that it reads."""
        lacks_input = bool(attempts) and attempts[-1].error_kind == "missing"
        unanswered = [self._spans.get(j) for j in self._reads[position] if self._response(j) is None]
        return lacks_input and all(span is not None and span.status == "refused" for span in unanswered)

    def _is_last(self, position: int) -> bool:
        return position == len(self._workflow.steps) - 1

    def _stream(self, position: int) -> Listeners | None:
        """Returns the listeners for each try of a step.

        None: the observer wants no text, or the step's text may turn out not to be the answer.
        """
        observe = self._question_context.observe
        final = self._round == self._question_context.ledger.budget.rounds - 1
        if observe is None or not self._question_context.streams or not final or not self._is_last(position):
            return None

        def listener(attempt: int, reasoning: bool) -> Callable[[str], None]:
            return lambda text: observe(StepText(self._round, position, text, attempt, reasoning))

        return lambda attempt: (listener(attempt, False), listener(attempt, True))

    def _repeat(self, position: int) -> int:
        worker = self._workflow.steps[position].worker
        before = sum(
            self._workflow.steps[earlier].worker == worker for earlier in self._to_run if earlier < position
        )
        return self._earlier_calls.get(worker, 0) + before

    def _context(self, position: int) -> StepInput:
        step = self._workflow.steps[position]
        earlier = tuple(
            EarlierStep(j, self._spans[j].subtask, response)
            for j in self._reads[position]
            if (response := self._response(j)) is not None
        )
        previous, shown = self._before(position)
        context = self._question_context
        return StepInput(context.question, step.subtask, shown + earlier, previous, context.settings.messages)

    def _before(self, position: int) -> tuple[str | None, tuple[EarlierStep, ...]]:
        """What the step sees of earlier rounds: the final response of the latest, or steps."""
        sees = self._workflow.steps[position].access.sees_previous
        return (self._previous, self._shown) if sees else (None, ())

    def _record(self, span: Span) -> None:
        self._spans[span.position] = span
        if self._question_context.observe is not None:
            self._question_context.observe(StepEnded(self._round, span))

    def _unstarted(self, position: int) -> Span:
        if position not in self._to_run:
            return self._span(position, status="skipped")
        if position not in self._needed_steps(EarlyStopping.skips):
            return self._span(position, status="skipped", error=_NOT_NEEDED)
        status = "refused" if self._limit.expired() else "cancelled"
        return self._span(position, status=status, error=self._why_stopped)

    def _span(self, position: int, **result: Any) -> Span:
        step = self._workflow.steps[position]
        return Span(
            position=position,
            worker=self._question_context.pool[step.worker].profile.name,
            subtask=step.subtask,
            reads=self._reads[position],
            waited=self._waited.get(position, ()),
            max_tokens=self._max_tokens[position],
            **result,
        )

    @property
    def _why_stopped(self) -> str:
        return self._question_context.ledger.time_is_up if self._limit.expired() else _GONE
