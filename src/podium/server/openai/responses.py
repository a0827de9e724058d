"""POST /v1/responses: from bytes to the response, whole, as a stream of events, or in the background.

`podium.server.background` answers questions in the background; a response there has a log of its events.
`stored_responses` reads, cancels and deletes stored responses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType

from fastapi import FastAPI, Request
from fastapi.responses import Response

from podium.server.api_errors import invalid
from podium.server.background import BackgroundQuestions
from podium.server.event_logs import EventLog
from podium.server.keys import Caller
from podium.server.openai.responses_body import ResponseBody
from podium.server.openai.responses_reply import ResponseFrame, ResponseWriter
from podium.server.question_body import open_question
from podium.server.requests import body_schema, find_caller, read_body, streamed_reply
from podium.server.served_answer import answer_from_trace, no_answer_error
from podium.server.service import Service
from podium.server.streaming import EventStream, Write
from podium.team import Event, QuestionEnded

_STREAMED_SHARE = 0.95
"""The share of a request's time limit after which the stream of a background response ends without an error. The client
continues with GET."""


def add_routes(app: FastAPI, service: Service, background: BackgroundQuestions) -> None:
    @app.post(
        "/v1/responses",
        response_class=Response,
        responses=streamed_reply("A response", "id", "object", "status", "output"),
        openapi_extra=body_schema(ResponseBody),
    )
    async def respond(request: Request) -> Response:
        caller = await find_caller(request)
        body = await read_body(ResponseBody, request)
        if body.background and body.store is False:
            raise invalid("background: a response in the background is kept: leave store out.", "background")
        question = await open_question(body, service, caller)
        chat_request = question.request
        frame = ResponseFrame.of_request(question.trace_id, chat_request)
        writer = ResponseWriter(frame, question.runner.pool.profiles, direct=question.direct)
        if not body.background:
            return await question.reply(writer, request, streams=body.stream)
        if chat_request.options.dry_run:
            raise invalid("background: a dry run calls no worker; leave background out.", "background")
        if chat_request.options.plan_id is not None:
            problem = "background: a plan that waited for approval runs at once; leave background out."
            raise invalid(problem, "background")
        await background.start(question, _ResponseLog(caller.name, writer, chat_request.ignored))
        if body.stream:
            seconds = _STREAMED_SHARE * service.settings.serve.timeout
            return stream_response(
                background, question.trace_id, caller, headers=question.headers, seconds=seconds
            )
        content = json.dumps(frame.response("queued"), separators=(",", ":")).encode()
        return Response(content, media_type="application/json", headers=question.headers)


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
        writer = self._writer
        assert writer is not None
        if not isinstance(event, QuestionEnded):
            self._add(writer.for_event(event))
        elif event.trace.status == "cancelled":
            self._add(writer.cancel())
        elif event.trace.answer is None:
            self._add(writer.fail(no_answer_error(event.trace)))
        else:
            self._add(writer.end(answer_from_trace(event.trace, self._ignored)))

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
