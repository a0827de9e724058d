"""Responses in the background: questions that `podium.server.background` answers, with a log of their events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from podium.server.api_errors import invalid
from podium.server.background import BackgroundQuestions
from podium.server.keys import Caller
from podium.server.live import EventLog
from podium.server.openai.responses_reply import ResponseFrame, ResponseWriter
from podium.server.prepared_question import PreparedQuestion
from podium.server.served_answers import answer_from_trace, no_answer_error
from podium.server.streaming import EventStream, Write
from podium.team import Event, QuestionEnded
from podium.trace import Trace


async def start_response(
    background: BackgroundQuestions, question: PreparedQuestion, frame: ResponseFrame
) -> ResponseFrame:
    """Store a request and begin its response. Once the request is stored, return the frame of the response.

    Raises:
        APIError, StoreError: see `BackgroundQuestions.start`.
    """
    frame = replace(frame, echo={**frame.echo, "background": True})
    writer = ResponseWriter(frame, question.runner.pool.profiles, direct=question.direct)
    log = _ResponseLog(question.caller.name, writer, question.request.ignored)
    await background.start(question.with_metadata(frame.stored_metadata), log)
    return frame


def stream_response(
    background: BackgroundQuestions,
    trace_id: str,
    caller: Caller,
    *,
    after: int = -1,
    headers: Mapping[str, str] = MappingProxyType({}),
    seconds: float | None = None,
) -> EventStream:
    """The reply that streams the events of a response. Another process of the server may make the response.

    Args:
        after: the number of the last event that the client has.
        seconds: the most seconds of the stream. If it is None, the stream ends with the response.
    """

    async def produce(write: Write) -> None:
        try:
            async with asyncio.timeout(seconds):
                has_log = await background.logs.send(write, trace_id, caller.visible_owner, str(after))
        except TimeoutError:
            return
        if not has_log:
            raise invalid(
                "stream: only a response in the background has events, at the server that makes it, until an hour "
                "after its end; read it without stream.",
                "stream",
            )

    return EventStream(produce, headers)


class _ResponseLog(EventLog):
    """The events of a response. After its end, the log keeps them without the question."""

    def __init__(self, owner: str | None, writer: ResponseWriter, ignored: tuple[str, ...]) -> None:
        super().__init__(owner)
        self._writer: ResponseWriter | None = writer
        self._ignored = ignored
        self._events: list[bytes] = []
        self._add(writer.queue())

    def begin(self) -> None:
        assert self._writer is not None
        self._add(self._writer.begin())

    def append(self, event: Event) -> None:
        assert self._writer is not None
        if isinstance(event, QuestionEnded):
            self._add(_last_events(event.trace, self._writer, self._ignored))
        else:
            self._add(self._writer.for_event(event))

    def end(self) -> None:
        self._writer = None
        super().end()

    def cursor_after(self, after: str | None) -> tuple[int, int]:
        return (0 if after is None else int(after) + 1), 0

    def read(self, cursor: tuple[int, int]) -> tuple[bytes, tuple[int, int]] | None:
        index, _ = cursor
        return (self._events[index], (index + 1, 0)) if index < len(self._events) else None

    def _add(self, content: bytes) -> None:
        self._events += [event + b"\n\n" for event in content.split(b"\n\n") if event]
        self.wake()


def _last_events(trace: Trace, writer: ResponseWriter, ignored: tuple[str, ...]) -> bytes:
    error = no_answer_error(trace)
    if trace.status == "cancelled":
        return writer.cancel()
    return writer.end(answer_from_trace(trace, ignored)) if error is None else writer.fail(error)
