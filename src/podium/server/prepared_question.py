"""A question that is ready to be answered, in one piece or as a stream.

All APIs answer through it. The `ReplyWriter` of an API writes the reply.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from podium.server.approval import ApprovedPlan, expiry
from podium.server.event_logs import QuestionLog
from podium.server.keys import Caller
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import ChatRequest
from podium.server.served_answer import (
    ServedAnswer,
    answer_from_plan,
    answer_from_trace,
    encode_reply,
    no_answer_error,
)
from podium.server.service import Service
from podium.server.streaming import EventStream, Write, until_disconnect
from podium.server.unsupported_fields import ignored_header
from podium.team import Event, PlanReady, QuestionEnded, Runner, TraceStoreError
from podium.team.events import stream_events
from podium.trace import Trace
from podium.types import Spent


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """One request, and everything that answering it needs."""

    service: Service
    request: ChatRequest
    caller: Caller
    runner: Runner
    trace_id: str
    approved: ApprovedPlan | None = None
    """The waiting plan that the question runs and takes when it begins. None if there is none, or once it was taken."""

    @classmethod
    async def open(cls, service: Service, request: ChatRequest, caller: Caller) -> PreparedQuestion:
        """Check a request, without running anything."""
        approved = await service.find_approved_plan(request, caller)
        runner = await service.open_runner(request, caller, approved)
        trace_id = request.options.plan_id or os.urandom(16).hex()
        return cls(service, request, caller, runner, trace_id, approved)

    @property
    def headers(self) -> dict[str, str]:
        return {**ignored_header(self.request.ignored), "x-podium-trace-id": self.trace_id}

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
        """Answer, and return the reply that `writer` writes, with these further headers. A client that disconnects
        cancels the question.

        Raises:
            APIError: there is no answer, and no stream was begun.
        """
        headers = {**self.headers, **headers}
        if streams:
            return EventStream(
                partial(self._stream, writer),
                headers,
                heartbeat=writer.heartbeat,
                fail=lambda error: writer.start() + writer.fail(error),
            )
        answer = await until_disconnect(request.receive, self._served_answer())
        return Response(
            encode_reply(writer.whole(answer)),
            media_type="application/json",
            headers={**headers, "x-podium-cost-usd": f"{answer.spent.cost_usd:.6f}"},
        )

    async def _served_answer(self) -> ServedAnswer:
        if self.request.options.dry_run:
            return await self.answer_with_plan()
        return self._serve(await self.answer())

    def _serve(self, trace: Trace) -> ServedAnswer:
        """The answer of a trace.

        Raises:
            APIError: the trace has none.
        """
        if trace.answer is None:
            raise no_answer_error(trace)
        return answer_from_trace(trace, self.request.ignored)

    async def _stream(self, writer: ReplyWriter, write: Write) -> None:
        """Write the events of the reply. All events that happen during one write are written together."""
        if self.request.options.dry_run:
            await write(writer.start() + writer.end(await self.answer_with_plan()))
            return

        def answer(on_event: Callable[[Event], None]) -> Coroutine[Any, Any, Trace]:
            return self.answer(on_event=on_event, streams=True)

        async with aclosing(stream_events(answer)) as new_events:
            async for events in new_events:
                content = b""
                for event in events:
                    if isinstance(event, QuestionEnded):
                        content += writer.end(self._serve(event.trace))
                    else:
                        content += writer.for_event(event)
                if content:
                    await write(writer.start() + content)

    async def answer(
        self,
        *,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
        in_background: bool = False,
    ) -> Trace:
        """Answer the question, and return the trace. If the request wants it, the trace is stored whatever happens.

        Args:
            on_event, streams: as in `Runner.answer`.
            in_background: whether `BackgroundQuestions` writes the question's events to the service's log.

        Raises:
            APIError: the approved plan was run meanwhile, so nothing ran.
            UsageError: the question cannot be answered as requested.
            StoreError: storage failed, and there is no answer.
        """
        if self.approved is not None:
            await self.service.plans.take(self.approved.planned)
        log = None if in_background else self.begin_log().append
        try:
            return await self.runner.answer(
                self.request.question,
                seed=self.request.seed,
                trace_id=self.trace_id,
                on_event=self._recording(on_event, log),
                streams=streams,
                conversation=self.request.messages,
            )
        except TraceStoreError as error:
            if error.trace.answer is None:
                raise
            return error.trace
        finally:
            if not in_background:
                self.service.event_logs.end(self.trace_id)

    def begin_log(self) -> QuestionLog:
        """Begin the service's log of the question's events."""
        log = QuestionLog(
            self.trace_id,
            self.caller.name,
            question=self.request.question.text,
            planner=self.runner.planner.name,
            workers=self.runner.pool.names,
        )
        self.service.event_logs.begin(self.trace_id, log)
        return log

    def _recording(
        self, on_event: Callable[[Event], None] | None, log: Callable[[Event], None] | None
    ) -> Callable[[Event], None]:
        """What records the question's events in the service, and hands them to `log` and `on_event`."""
        planners = self.service.planners

        def record(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                event = QuestionEnded(self._record_trace(event.trace, self._keep))
            elif isinstance(event, PlanReady):
                planners.record_plan(self.runner.planner.name, event.trace.error)
            if log is not None:
                log(event)
            if on_event is not None:
                on_event(event)

        return record

    def _record_trace(self, trace: Trace, store: Callable[[Trace], None]) -> Trace:
        """Store the trace and hand it to the service's observers, with its owner, and return it."""
        added = {"owner": self.caller.name, "user": self.request.user, "metadata": self.request.metadata}
        trace = trace.model_copy(update=added)
        store(trace)
        for observe in self.service.observers:
            observe(self.request, trace)
        return trace

    def _keep(self, trace: Trace) -> None:
        self.service.cached_conversations.record(trace, self.caller)
        if self.request.keep:
            self.service.keep(trace, self.caller)

    async def _dry_run(self) -> Trace:
        """Write the plan. Its trace waits for approval, or is stored if there is no plan, whatever happens."""
        request = self.request

        def add_to_plans(trace: Trace) -> None:
            if request.worker is None:
                self.service.plans.add(trace, keep=request.keep)

        def record(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                self._record_trace(event.trace, add_to_plans)

        return await self.runner.dry_run(
            request.question, seed=request.seed, trace_id=self.trace_id, on_event=record
        )

    async def answer_with_plan(self) -> ServedAnswer:
        """The answer of a dry run: its plan, which waits for approval. A plan that waits already is not written again,
        but is checked with the request's changes.

        Raises:
            APIError: there is no plan.
            UsageError: the question cannot be planned as requested.
            StoreError: a spend limit cannot be written.
            asyncio.CancelledError: the caller disconnected. The trace is stored as cancelled, with what planning cost.
        """
        service, request, pool, approved = self.service, self.request, self.runner.pool, self.approved
        if approved is not None:
            trace, workflow, to_run = approved.planned, approved.workflow, approved.workflow_for(pool)
        else:
            trace = await self._dry_run()
            if trace.rounds[0].workflow is None:
                raise no_answer_error(trace)
            workflow = to_run = trace.rounds[0].workflow
        estimate = await service.recent_traces.estimate(to_run, pool, request.question)
        expires = expiry(trace) if request.worker is None else None
        answer = answer_from_plan(trace, workflow, estimate, expires=expires)
        if approved is not None:  # The request that asked for the plan has paid for planning.
            answer = replace(answer, spent=Spent())
        return answer
