"""A question that is ready to be answered, once or several times at once, in one piece or as a stream.

All APIs answer through it. The `ReplyWriter` of an API writes the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import uuid4

from fastapi import Request
from fastapi.responses import Response

from podium.server.approval import ApprovedPlan, expiry
from podium.server.keys import Caller
from podium.server.live import QuestionLog
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import ChatRequest
from podium.server.served_answers import (
    ServedAnswer,
    answer_from_plan,
    answer_from_trace,
    encode_reply,
    no_answer_error,
)
from podium.server.service import Service
from podium.server.streaming import EventStream, Write, cancel_on_disconnect
from podium.server.unsupported_fields import ignored_header
from podium.team import Event, PlanReady, QuestionEnded, Runner, TraceStoreError
from podium.trace import Trace
from podium.types import Usage
from podium.workflow import Workflow

NextEvents = Callable[[], Awaitable[list[tuple[int, Event]]]]
"""A function that waits for the next events and returns all new events, each with the number of its answer."""


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """One request, and everything that answering it needs."""

    service: Service
    request: ChatRequest
    caller: Caller
    runner: Runner
    ids: tuple[str, ...]
    """Trace ids, one for each answer."""
    approved: ApprovedPlan | None = None
    """The waiting plan that the question runs and takes when it begins. None if there is none, or once it was taken."""

    @classmethod
    async def open(
        cls, service: Service, request: ChatRequest, caller: Caller, count: int = 1
    ) -> PreparedQuestion:
        """Check a request for `count` answers, without running anything.

        Raises:
            APIError, UsageError: the request cannot be answered.
        """
        approved = await service.find_plan(request, caller)
        runner = await service.open_runner(request, caller, approved)
        ids = (request.plan_id or uuid4().hex, *(uuid4().hex for _ in range(1, count)))
        return cls(service, request, caller, runner, ids, approved)

    def with_metadata(self, metadata: dict[str, str]) -> PreparedQuestion:
        """The question with other metadata of its trace."""
        return replace(self, request=replace(self.request, metadata=metadata))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the reply."""
        return {**ignored_header(self.request.ignored), "x-podium-trace-id": self.ids[0]}

    @property
    def direct(self) -> bool:
        """Whether one worker is called directly."""
        return self.request.worker is not None

    async def reply(
        self,
        writer: ReplyWriter,
        request: Request,
        *,
        streams: bool | None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        """Answer, and return the reply that `writer` writes.

        Args:
            request: a client that disconnects cancels the question.
            headers: further headers of the reply.

        Raises:
            APIError: there is no answer, and no stream was begun.
        """
        headers = {**self.headers, **headers}
        if streams:

            async def produce(write: Write) -> None:
                await self._stream(writer, write)

            return EventStream(
                produce,
                headers,
                heartbeat=writer.heartbeat,
                fail=lambda error: writer.start() + writer.fail(error),
            )
        async with cancel_on_disconnect(request.receive):
            answers, failed = await self._make_answers()
        spent = sum(answer.cost_usd for answer in (*answers.values(), *failed))
        return Response(
            encode_reply(writer.whole(answers, failed)),
            media_type="application/json",
            headers={**headers, "x-podium-cost-usd": f"{spent:.6f}"},
        )

    async def _make_answers(self) -> tuple[dict[int, ServedAnswer], list[ServedAnswer]]:
        if self.request.dry_run:
            return {0: await self.answer_with_plan()}, []
        ended: dict[int, Trace] = {}
        if len(self.ids) == 1:
            ended[0] = await self.answer()
            return self._to_answers(ended)
        async with self._events(streams=False) as next_events:
            while len(ended) < len(self.ids):
                for number, event in await next_events():
                    if isinstance(event, QuestionEnded):
                        ended[number] = event.trace
        return self._to_answers(ended)

    async def _stream(self, writer: ReplyWriter, write: Write) -> None:
        if self.request.dry_run:
            planned = await self.answer_with_plan()
            await write(writer.start() + writer.end(planned, [planned]))
            return
        ended: dict[int, Trace] = {}
        async with self._events(streams=True) as next_events:
            while len(ended) < len(self.ids):
                pieces = []
                for number, event in await next_events():
                    if isinstance(event, QuestionEnded):
                        ended[number] = event.trace
                        pieces.append(self._write_end(writer, number, ended))
                    else:
                        pieces.append(writer.for_event(event, number))
                if content := b"".join(pieces):
                    await write(writer.start() + content)

    async def answer(
        self,
        number: int = 0,
        *,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
        in_background: bool = False,
    ) -> Trace:
        """Make answer `number`, and return its trace. If the request wants it, the trace is stored whatever happens.

        Args:
            on_event, streams: as in `Runner.answer`.
            in_background: whether `BackgroundQuestions` writes the question's events to the service's log.

        Raises:
            APIError: the approved plan was run meanwhile, so nothing ran.
            UsageError: the question cannot be answered as requested.
            StoreError: storage failed, and there is no answer.
            asyncio.CancelledError: the caller disconnected. The trace is stored as cancelled.
        """
        service, trace_id = self.service, self.ids[number]
        if self.approved is not None:
            await service.plans.take(self.approved.planned)
        request = self.request.for_sample(number)
        log = None if in_background else self.begin_log(number).append
        try:
            return await self.runner.answer(
                request.question,
                seed=request.seed,
                sample=request.sample,
                trace_id=trace_id,
                on_event=self._observer(number, on_event, log),
                streams=streams,
            )
        except TraceStoreError as error:
            if error.trace.answer is None:
                raise
            return error.trace
        finally:
            if not in_background:
                service.live.end(trace_id)

    def begin_log(self, number: int = 0) -> QuestionLog:
        """Begin the service's log of the events of answer `number`."""
        log = QuestionLog(
            self.ids[number],
            self.caller.name,
            question=self.request.question.text,
            planner=self.runner.planner.name,
            workers=self.runner.pool.names,
        )
        self.service.live.begin(self.ids[number], log)
        return log

    def _observer(
        self, number: int, on_event: Callable[[Event], None] | None, log: Callable[[Event], None] | None
    ) -> Callable[[Event], None]:
        """An observer that sends events to all observers, and stores the trace with its owner, user and metadata."""
        service, runner, trace_id = self.service, self.runner, self.ids[number]
        others = [observer(trace_id, self.request, self.caller) for observer in service.observers]
        observers = [observer for observer in (log, *others, on_event) if observer is not None]

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                event = replace(event, trace=self._with_owner(event.trace))
                service.conversations.record(event.trace, self.caller)
                if self.request.keep:
                    service.keep(event.trace, self.caller)
            elif isinstance(event, PlanReady):
                service.planners.record_plan(runner.planner.name, event.trace.error)
            for notify in observers:
                notify(event)

        return observe

    def _with_owner(self, trace: Trace) -> Trace:
        """The trace with the owner, user and metadata of its request."""
        added = {"owner": self.caller.name, "user": self.request.user, "metadata": self.request.metadata}
        return trace.model_copy(update=added)

    @asynccontextmanager
    async def _events(self, *, streams: bool) -> AsyncIterator[NextEvents]:
        """Make all answers at the same time, and yield a function that waits for the next events.

        That function raises the errors of answering. Leaving the block cancels the answers that are still running.
        """
        queue: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()

        async def answer(number: int) -> None:
            try:
                await self.answer(
                    number, on_event=lambda event: queue.put_nowait((number, event)), streams=streams
                )
            except Exception as error:  # `next_events` raises it again, since it would be lost in this task.
                queue.put_nowait((number, error))

        async def next_events() -> list[tuple[int, Event]]:
            batch = [await queue.get()]
            while not queue.empty():
                batch.append(queue.get_nowait())
            events: list[tuple[int, Event]] = []
            for number, item in batch:
                if isinstance(item, Exception):
                    raise item
                events.append((number, item))
            return events

        tasks = [asyncio.create_task(answer(number)) for number in range(len(self.ids))]
        try:
            yield next_events
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _write_end(self, writer: ReplyWriter, number: int, ended: Mapping[int, Trace]) -> bytes:
        """The end of answer `number`. The last end reports all answers too."""
        if len(ended) == len(self.ids):
            answers, failed = self._to_answers(ended)
            return writer.end(answers.get(number), [*answers.values(), *failed], number)
        has_answer = ended[number].answer is not None
        answer = answer_from_trace(ended[number], self.request.ignored) if has_answer else None
        return writer.end(answer, number=number)

    def _to_answers(self, traces: Mapping[int, Trace]) -> tuple[dict[int, ServedAnswer], list[ServedAnswer]]:
        """The answers by number, and what is known about failed answers, which do not stop the others.

        Raises:
            APIError: all answers failed.
        """
        error = (
            None if any(trace.answer is not None for trace in traces.values()) else no_answer_error(traces[0])
        )
        if error is not None:
            raise error
        read = {number: answer_from_trace(traces[number], self.request.ignored) for number in sorted(traces)}
        failed = [answer for number, answer in read.items() if traces[number].answer is None]
        return {
            number: answer for number, answer in read.items() if traces[number].answer is not None
        }, failed

    async def _dry_run(self) -> Trace:
        """Write the plan. Its trace waits for approval, or is stored if there is no plan, whatever happens."""
        request = self.request
        observers = [observer(self.ids[0], request, self.caller) for observer in self.service.observers]

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                event = replace(event, trace=self._with_owner(event.trace))
                if request.worker is None:
                    self.service.plans.add(event.trace, keep=request.keep)
            for notify in observers:
                notify(event)

        trace = await self.runner.dry_run(
            request.question, seed=request.seed, trace_id=self.ids[0], on_event=observe
        )
        return self._with_owner(trace)

    async def answer_with_plan(self) -> ServedAnswer:
        """The answer of a dry run: its plan, which waits for approval. A plan that waits already is not written again,
        but is checked with the request's changes.

        Raises:
            APIError: there is no plan.
            UsageError: the question cannot be planned as requested.
            StoreError: a spend limit cannot be written.
            asyncio.CancelledError: the caller disconnected. The trace is stored as cancelled, with what planning cost.
        """
        service, request, runner, approved = self.service, self.request, self.runner, self.approved
        workflow: Workflow | None
        if approved is not None:
            trace, workflow = approved.planned, approved.workflow
            estimate = await service.prices.estimate(
                approved.workflow_for(runner.pool), runner.pool, request.question
            )
        else:
            trace = await self._dry_run()
            workflow = trace.rounds[0].workflow
            error = no_answer_error(trace)
            if workflow is None and error is not None:
                raise error
            assert workflow is not None
            estimate = await service.prices.estimate(workflow, runner.pool, request.question)
        waits = request.worker is None
        answer = answer_from_plan(trace, workflow, estimate, expires=expiry(trace) if waits else None)
        if approved is not None:  # The request that asked for the plan has paid for planning.
            answer = replace(answer, usage=Usage(), cost_usd=0.0)
        return answer
