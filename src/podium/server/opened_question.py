"""A question that is ready to be answered, once or several times at once: whole, or as a stream.

All APIs answer through it; what their replies look like is their `ReplyWriter`'s.
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

from podium.server.answers import ServedAnswer, encode_reply, from_plan, from_trace, no_answer_error
from podium.server.approval import expiry
from podium.server.keys import Caller
from podium.server.leniency import ignored_header
from podium.server.reply_writer import ReplyWriter
from podium.server.requests import ChatRequest
from podium.server.service import Service
from podium.server.streaming import EventStream, Write, cancel_on_disconnect
from podium.team import Event, QuestionEnded, Runner
from podium.trace import Trace
from podium.types import Usage

NextEvents = Callable[[], Awaitable[list[tuple[int, Event]]]]
"""Waits for the next events and returns all that have happened, each with the number of its answer."""


@dataclass(frozen=True, slots=True)
class OpenedQuestion:
    """One request, and all that answering it needs."""

    service: Service
    request: ChatRequest
    caller: Caller
    runner: Runner
    ids: tuple[str, ...]
    """Trace ids, one for each answer."""

    @classmethod
    async def open(
        cls, service: Service, request: ChatRequest, caller: Caller, count: int = 1
    ) -> OpenedQuestion:
        """Check a request for `count` answers, without running anything.

        Raises:
            APIError, UsageError: it cannot be answered.
        """
        runner = await service.open_runner(request, caller)
        ids = (request.plan_id or uuid4().hex, *(uuid4().hex for _ in range(1, count)))
        return cls(service, request, caller, runner, ids)

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
            headers: further ones.

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
            answers, failed = await self._answers()
        spent = sum(answer.cost_usd for answer in (*answers.values(), *failed))
        return Response(
            encode_reply(writer.whole(answers, failed)),
            media_type="application/json",
            headers={**headers, "x-podium-cost-usd": f"{spent:.6f}"},
        )

    async def _answers(self) -> tuple[dict[int, ServedAnswer], list[ServedAnswer]]:
        if self.request.dry_run:
            return {0: await self.planned()}, []
        ended: dict[int, Trace] = {}
        if len(self.ids) == 1:
            ended[0] = await self._answer(0)
            return self._read(ended)
        async with self._events(streams=False) as next_events:
            while len(ended) < len(self.ids):
                for number, event in await next_events():
                    if isinstance(event, QuestionEnded):
                        ended[number] = event.trace
        return self._read(ended)

    async def _stream(self, writer: ReplyWriter, write: Write) -> None:
        if self.request.dry_run:
            planned = await self.planned()
            await write(writer.start() + writer.end(planned, [planned]))
            return
        ended: dict[int, Trace] = {}
        async with self._events(streams=True) as next_events:
            while len(ended) < len(self.ids):
                pieces = []
                for number, event in await next_events():
                    if isinstance(event, QuestionEnded):
                        ended[number] = event.trace
                        pieces.append(self._end(writer, number, ended))
                    else:
                        pieces.append(writer.for_event(event, number))
                if content := b"".join(pieces):
                    await write(writer.start() + content)

    async def _answer(
        self, number: int, on_event: Callable[[Event], None] | None = None, *, streams: bool = False
    ) -> Trace:
        return await self.service.answer(
            self.request.sampled(number),
            self.caller,
            trace_id=self.ids[number],
            runner=self.runner,
            on_event=on_event,
            streams=streams,
        )

    @asynccontextmanager
    async def _events(self, *, streams: bool) -> AsyncIterator[NextEvents]:
        """Answer all at the same time, and yield a function that waits for the next events.

        That function raises what answering raises. Leaving the block cancels the answers that are still running.
        """
        queue: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()

        async def answer(number: int) -> None:
            try:
                await self._answer(number, lambda event: queue.put_nowait((number, event)), streams=streams)
            except Exception as error:  # `next_events` raises it again; in this task it would be lost.
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

    def _end(self, writer: ReplyWriter, number: int, ended: Mapping[int, Trace]) -> bytes:
        """The end of answer `number`; with that of the last, all answers."""
        if len(ended) == len(self.ids):
            answers, failed = self._read(ended)
            return writer.end(answers.get(number), [*answers.values(), *failed], number)
        has_answer = ended[number].answer is not None
        answer = from_trace(ended[number], self.request.ignored) if has_answer else None
        return writer.end(answer, number=number)

    def _read(self, traces: Mapping[int, Trace]) -> tuple[dict[int, ServedAnswer], list[ServedAnswer]]:
        """The answers by number, and what is known of those that failed, which does not stop the others.

        Raises:
            APIError: all failed.
        """
        error = (
            None if any(trace.answer is not None for trace in traces.values()) else no_answer_error(traces[0])
        )
        if error is not None:
            raise error
        read = {number: from_trace(traces[number], self.request.ignored) for number in sorted(traces)}
        failed = [answer for number, answer in read.items() if traces[number].answer is None]
        return {n: answer for n, answer in read.items() if traces[n].answer is not None}, failed

    async def planned(self) -> ServedAnswer:
        """The answer of a dry run.

        Raises:
            APIError: there is no plan.
        """
        trace, workflow, estimate = await self.service.plan(
            self.request, self.caller, self.runner, self.ids[0]
        )
        error = no_answer_error(trace)
        if workflow is None and error is not None:
            raise error
        assert workflow is not None
        waits = self.request.worker is None
        answer = from_plan(trace, workflow, estimate, expires=expiry(trace) if waits else None)
        if self.request.plan_id is not None:  # Its planning was paid for by the request that asked for it.
            answer = replace(answer, usage=Usage(), cost_usd=0.0)
        return answer
