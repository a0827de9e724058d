"""A question that is ready to be answered, once: whole, or as the events of one route's stream.

What a reply looks like is its route's (`AnswerEvents`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from podium.errors import APIError, PodiumError
from podium.server.answers import ServedAnswer, from_plan, from_trace, no_answer_error
from podium.server.api_errors import to_api_error
from podium.server.approval import expiry
from podium.server.keys import Caller
from podium.server.leniency import ignored_header
from podium.server.requests import ChatRequest
from podium.server.service import Service, stream_answers
from podium.server.streaming import Write
from podium.team import Event, QuestionEnded, Runner
from podium.trace import Trace
from podium.types import Usage


class AnswerEvents(Protocol):
    """The events of one stream, as bytes."""

    def start(self) -> bytes:
        """The first events; empty after the first call, as a sign of life may have written them."""
        ...

    def for_event(self, event: Event) -> bytes:
        """The events for a runner's event, except for the end; empty if it is not reported."""
        ...

    def end(self, answer: ServedAnswer) -> bytes:
        """The last events of an answer."""
        ...

    def fail(self, error: APIError) -> bytes:
        """The last event where there is no answer."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedQuestion:
    """One request, and all that answering it needs."""

    service: Service
    request: ChatRequest
    caller: Caller
    runner: Runner
    trace_id: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the reply."""
        return {**ignored_header(self.request.ignored), "x-podium-trace-id": self.trace_id}

    async def answer(self) -> ServedAnswer:
        """The answer, in one piece.

        Raises:
            APIError: there is none.
        """
        if self.request.dry_run:
            return await self.planned()
        return self.read(
            await self.service.answer(self.request, self.caller, trace_id=self.trace_id, runner=self.runner)
        )

    async def write(self, events: AnswerEvents, write: Write) -> ServedAnswer | None:
        """Answer and write the events. Returns the answer; None: a failure, which the last event reports.

        Raises:
            PodiumError: a failure before the first event.
        """
        if self.request.dry_run:
            planned = await self.planned()
            await write(events.start() + events.end(planned))
            return planned
        answers = await self.write_all(
            [self.trace_id],
            write,
            first=events.start,
            for_event=lambda _, event: events.for_event(event),
            for_end=lambda _, answers, failed: events.end(answers[0]),
            fail=events.fail,
        )
        return None if answers is None else answers[0]

    async def write_all(
        self,
        ids: Sequence[str],
        write: Write,
        *,
        first: Callable[[], bytes] = bytes,
        for_event: Callable[[int, Event], bytes],
        for_end: Callable[[int, Mapping[int, ServedAnswer], Mapping[int, Trace]], bytes],
        fail: Callable[[APIError], bytes],
    ) -> dict[int, ServedAnswer] | None:
        """Answer once for each trace id, at the same time, and write what the callables make of it.

        A failed answer does not stop the others. If all fail, the failure is that of the first.

        Args:
            first: returns what is written before all else.
            for_event: called with the number of an answer and an event of it; may return nothing.
            for_end: called with the number of an answer that ended or failed, all answers so far, and the traces of
                those that failed so far.
            fail: called with a failure after the first event.

        Returns:
            The answers by number; None: a failure, which the last event reports.

        Raises:
            PodiumError: a failure before the first event.
        """
        answers: dict[int, ServedAnswer] = {}
        failed: dict[int, Trace] = {}
        started = False
        try:
            async with stream_answers(
                self.service, self.request, self.caller, ids, self.runner
            ) as next_events:
                while len(answers) + len(failed) < len(ids):
                    pieces = []
                    for number, event in await next_events():
                        if isinstance(event, QuestionEnded):
                            if event.trace.answer is None:
                                failed[number] = event.trace
                            else:
                                answers[number] = self.read(event.trace)
                            if len(failed) == len(ids):
                                self.read(failed[0])  # It raises: there is no answer.
                            pieces.append(for_end(number, answers, failed))
                        else:
                            pieces.append(for_event(number, event))
                    if content := b"".join(pieces):
                        await write(content if started else first() + content)
                        started = True
        except PodiumError as failure:
            if not started:
                raise
            await write(fail(to_api_error(failure)))
            return None
        return answers

    def read(self, trace: Trace) -> ServedAnswer:
        """The answer of a trace.

        Raises:
            APIError: it has none.
        """
        error = no_answer_error(trace)
        if error is not None:
            raise error
        return from_trace(trace, self.request.ignored)

    async def planned(self) -> ServedAnswer:
        """The answer of a dry run.

        Raises:
            APIError: there is no plan.
        """
        trace, workflow, estimate = await self.service.plan(
            self.request, self.caller, self.runner, self.trace_id
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
