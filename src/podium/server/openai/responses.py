"""POST /v1/responses: from bytes to the response, whole, as a stream of events, or in the background. Stored responses
are read, cancelled and deleted, also while they are made: GET and DELETE /v1/responses/{id}, POST .../{id}/cancel.

`podium.server.background` answers questions in the background; a response there has a log of its events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response

from podium.server.api_errors import invalid
from podium.server.approval import expiry
from podium.server.background import BackgroundQuestions
from podium.server.event_logs import EventLog
from podium.server.keys import Caller
from podium.server.openai.response_items import find_background, find_trace, unknown_response
from podium.server.openai.responses_body import ResponseBody
from podium.server.openai.responses_reply import ResponseFrame, ResponseWriter, response_usage
from podium.server.podium_details import details_of
from podium.server.question_body import open_question
from podium.server.requests import RequestCaller, body_schema, find_caller, read_body, streamed_reply
from podium.server.served_answer import answer_from_plan, answer_from_trace, no_answer_error
from podium.server.service import Service
from podium.server.streaming import EventStream, Write
from podium.team import Event, QuestionEnded
from podium.trace import Trace
from podium.types import Spent

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

    _add_stored_routes(app, service, background)


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


def _add_stored_routes(app: FastAPI, service: Service, background: BackgroundQuestions) -> None:
    async def read(id: str, caller: Caller) -> dict[str, Any]:
        row = await find_background(id, service.store, caller)
        if row is not None:
            return ResponseFrame.of_trace(row.trace).response("in_progress" if row.begun else "queued")
        return _ended_response(await find_trace(id, service.store, caller, "id"))

    @app.get(
        "/v1/responses/{id}",
        response_class=Response,
        responses=streamed_reply("The response", "id", "object", "status", "output"),
    )
    async def retrieve(
        caller: RequestCaller,
        id: str,
        stream: bool = False,
        starting_after: int | None = Query(default=None, ge=0),
    ) -> Response:
        if not stream:
            return JSONResponse(await read(id, caller))
        if await find_background(id, service.store, caller) is None:
            await find_trace(id, service.store, caller, "id")
        after = -1 if starting_after is None else starting_after
        return stream_response(background, id.removeprefix("resp_"), caller, after=after)

    @app.post("/v1/responses/{id}/cancel")
    async def cancel(caller: RequestCaller, id: str) -> dict[str, Any]:
        row = await find_background(id, service.store, caller)
        if row is not None:
            await background.cancel(row.trace.id)
        elif not ResponseFrame.of_trace(await find_trace(id, service.store, caller, "id")).echoed.background:
            raise invalid("Only a response in the background can be cancelled; this one is finished.", "id")
        return await read(id, caller)

    @app.delete("/v1/responses/{id}")
    async def delete(caller: RequestCaller, id: str) -> dict[str, Any]:
        row = await find_background(id, service.store, caller)
        if row is not None:
            await background.delete(row.trace.id)
            return {"id": id, "object": "response", "deleted": True}
        trace = await find_trace(id, service.store, caller, "id")
        if not await service.store.to_thread(service.store.delete, trace.id, caller.visible_owner):
            raise unknown_response(id, "id")
        return {"id": id, "object": "response", "deleted": True}


def _ended_response(trace: Trace) -> dict[str, Any]:
    frame = ResponseFrame.of_trace(trace)
    if trace.status == "planned" and (workflow := trace.rounds[0].workflow) is not None:
        answer = answer_from_plan(trace, workflow, None, expires=expiry(trace))
        return frame.final(answer)
    background = frame.echoed.background
    cost: dict[str, Any] = {}
    if background:
        cost = {
            "usage": response_usage(Spent(trace.usage, trace.cost_usd)),
            "podium": details_of(trace).model_dump(mode="json"),
        }
    if background and trace.status == "cancelled":
        return frame.response("cancelled", **cost)
    if trace.answer is None:
        error = no_answer_error(trace)
        return frame.response("failed", error={"code": error.code, "message": error.message}, **cost)
    return frame.final(answer_from_trace(trace))
