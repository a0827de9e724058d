"""A question that is ready to be answered, once or several times at once, in one piece or as a stream.

All APIs answer through it. The `ReplyWriter` of an API writes the reply.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

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
from podium.server.streaming import EventStream, Write, until_disconnect
from podium.server.unsupported_fields import ignored_header
from podium.team import Event, PlanReady, QuestionEnded, Runner, TraceStoreError
from podium.trace import Trace
from podium.types import Usage


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
        """Check a request for `count` answers, without running anything."""
        approved = await service.find_plan(request, caller)
        runner = await service.open_runner(request, caller, approved)
        ids = [os.urandom(16).hex() for _ in range(count)]
        ids[0] = request.options.plan_id or ids[0]
        return cls(service, request, caller, runner, tuple(ids), approved)

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
        answers, failed = await until_disconnect(request.receive, self._make_answers())
        spent = sum(answer.cost_usd for answer in (*answers.values(), *failed))
        return Response(
            encode_reply(writer.whole(answers, failed)),
            media_type="application/json",
            headers={**headers, "x-podium-cost-usd": f"{spent:.6f}"},
        )

    async def _make_answers(self) -> tuple[dict[int, ServedAnswer], list[ServedAnswer]]:
        if self.request.options.dry_run:
            return {0: await self.answer_with_plan()}, []
        if len(self.ids) == 1:
            return self._to_answers({0: await self.answer()})
        ended: dict[int, Trace] = {}
        async with aclosing(self._events(streams=False)) as batches:
            async for batch in batches:
                ended |= {n: event.trace for n, event in batch if isinstance(event, QuestionEnded)}
        return self._to_answers(ended)

    async def _stream(self, writer: ReplyWriter, write: Write) -> None:
        if self.request.options.dry_run:
            planned = await self.answer_with_plan()
            await write(writer.start() + writer.end(planned, [planned]))
            return
        ended: dict[int, Trace] = {}
        async with aclosing(self._events(streams=True)) as batches:
            async for batch in batches:
                content = b""
                for number, event in batch:
                    if isinstance(event, QuestionEnded):
                        ended[number] = event.trace
                        content += self._write_end(writer, number, ended)
                    else:
                        content += writer.for_event(event, number)
                if content:
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
        """An observer that tells the service, and `log` and `on_event`, about the events of answer `number`."""
        service = self.service

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                trace = self._with_owner(event.trace)
                event = QuestionEnded(trace)
                service.conversations.record(trace, self.caller)
                if self.request.keep:
                    service.keep(trace, self.caller)
                self._tell_observers(trace)
            elif isinstance(event, PlanReady):
                service.planners.record_plan(self.runner.planner.name, event.trace.error)
            if log is not None:
                log(event)
            if on_event is not None:
                on_event(event)

        return observe

    def _tell_observers(self, trace: Trace) -> None:
        for observe in self.service.observers:
            observe(self.request, trace)

    def _with_owner(self, trace: Trace) -> Trace:
        added = {"owner": self.caller.name, "user": self.request.user, "metadata": self.request.metadata}
        return trace.model_copy(update=added)

    async def _events(self, *, streams: bool) -> AsyncGenerator[list[tuple[int, Event]]]:
        """Make all answers at the same time, and yield all new events, each with the number of its answer.

        Raises the errors of answering. Closing the generator cancels the answers that are still running.
        """
        queue: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()

        async def answer(number: int) -> None:
            try:
                await self.answer(
                    number, on_event=lambda event: queue.put_nowait((number, event)), streams=streams
                )
            except Exception as error:  # It is raised again below, since it would be lost in this task.
                queue.put_nowait((number, error))

        tasks = [asyncio.create_task(answer(number)) for number in range(len(self.ids))]
        running = len(tasks)
        try:
            while running:
                new = [await queue.get()]
                while not queue.empty():
                    new.append(queue.get_nowait())
                events: list[tuple[int, Event]] = []
                for number, item in new:
                    if isinstance(item, Exception):
                        raise item
                    running -= isinstance(item, QuestionEnded)
                    events.append((number, item))
                yield events
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
        if all(trace.answer is None for trace in traces.values()):
            raise no_answer_error(traces[0])
        answers: dict[int, ServedAnswer] = {}
        failed: list[ServedAnswer] = []
        for number in sorted(traces):
            answer = answer_from_trace(traces[number], self.request.ignored)
            if traces[number].answer is None:
                failed.append(answer)
            else:
                answers[number] = answer
        return answers, failed

    async def _dry_run(self) -> Trace:
        """Write the plan. Its trace waits for approval, or is stored if there is no plan, whatever happens."""
        request = self.request

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                trace = self._with_owner(event.trace)
                if request.worker is None:
                    self.service.plans.add(trace, keep=request.keep)
                self._tell_observers(trace)

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
            answer = replace(answer, usage=Usage(), cost_usd=0.0)
        return answer
