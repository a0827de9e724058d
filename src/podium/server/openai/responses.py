"""POST /v1/responses and GET /v1/responses/{id}: from bytes to the response, whole or as a stream of events."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.errors import PodiumError
from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.server.answers import ServedAnswer, from_plan, from_trace, no_answer_error
from podium.server.api_errors import error_responses, to_api_error
from podium.server.keys import Caller
from podium.server.leniency import ignored_header
from podium.server.openai.responses_body import ResponseBody, find_trace, read_response
from podium.server.openai.responses_reply import ResponseEvents, ResponseFrame, output_items
from podium.server.requests import ChatRequest, parse_body
from podium.server.service import Service, stream_answers
from podium.server.streaming import EventStream, Write, cancel_on_disconnect
from podium.trace import Trace

_ERRORS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
_REPLY = {
    "description": "A response; with `stream`, its events as server-sent events.",
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["id", "object", "status", "output"]}},
        "text/event-stream": {"schema": {"type": "string"}},
    },
}


def routes(service: Service) -> APIRouter:
    """POST /v1/responses and GET /v1/responses/{id}."""
    router = APIRouter()
    body_schema = {
        "required": True,
        "content": {"application/json": {"schema": ResponseBody.model_json_schema()}},
    }

    @router.post(
        "/v1/responses",
        response_class=Response,
        responses={200: _REPLY, **error_responses(*_ERRORS)},
        openapi_extra={"requestBody": body_schema},
    )
    async def respond(request: Request) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(ResponseBody, await request.body(), service.parse_lock)
        chat_request = await read_response(body, service, caller)
        frame = ResponseFrame(
            trace_id=uuid4().hex,
            created=int(time.time()),
            model=body.model,
            question=chat_request.question,
            metadata=chat_request.metadata,
            user=chat_request.user,
            store=chat_request.keep and service.store is not None,
            previous=body.previous_response_id,
        )
        response = _Response(
            service, chat_request, caller, await service.open_orchestrator(chat_request, caller), frame
        )
        if body.stream:
            return response.streamed()
        async with cancel_on_disconnect(request.receive):
            return await response.whole()

    @router.get("/v1/responses/{id}", responses=error_responses(400, 401, 404, 429, 503))
    async def retrieve(request: Request, id: str) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        trace = await find_trace(id, service, caller, "id")
        frame = ResponseFrame(
            trace_id=trace.id,
            created=int(datetime.fromisoformat(trace.started_at).timestamp()),
            model=_model(trace),
            question=trace.question,
            metadata=trace.metadata,
            user=trace.user,
            store=True,
            previous=None,
        )
        error = no_answer_error(trace)
        if error is not None:
            body = {"code": error.code, "message": error.message}
            return frame.response("failed", error=body)
        answer = from_trace(trace)
        return frame.final(answer, output_items(answer))

    return router


def _model(trace: Trace) -> str:
    """The model of a stored response. The trace keeps the planner, not the name that the request used."""
    form, _, worker = trace.planner.partition(":")
    return worker if form == "straight" else "podium"


@dataclass(frozen=True, slots=True)
class _Response:
    """One request and what its response needs."""

    service: Service
    request: ChatRequest
    caller: Caller
    orchestrator: Orchestrator
    frame: ResponseFrame

    async def whole(self) -> Response:
        """The response in one piece."""
        if self.request.dry_run:
            answer = await self._planned()
        else:
            trace = await self.service.answer(
                self.request, self.caller, trace_id=self.frame.trace_id, orchestrator=self.orchestrator
            )
            error = no_answer_error(trace)
            if error is not None:
                raise error
            answer = from_trace(trace, self.request.ignored)
        response = self.frame.final(answer, output_items(answer))
        headers = {**self._headers(), "x-podium-cost-usd": f"{answer.cost_usd:.6f}"}
        content = json.dumps(response, separators=(",", ":")).encode()
        return Response(content, media_type="application/json", headers=headers)

    def streamed(self) -> Response:
        """The response as a stream of events."""
        direct = self.request.worker is not None
        events = ResponseEvents(self.frame, self.orchestrator.pool.profiles, direct=direct)

        async def produce(write: Write) -> None:
            if self.request.dry_run:
                planned = await self._planned()
                await write(events.start() + events.end(planned))
                return
            started = False
            try:
                async with stream_answers(
                    self.service, self.request, self.caller, [self.frame.trace_id], self.orchestrator
                ) as next_events:
                    ended, first = False, events.start()
                    while not ended:
                        pieces = []
                        for _, event in await next_events():
                            ended = isinstance(event, QuestionEnded)
                            pieces.append(self._piece(events, event))
                        if any(pieces):
                            started = True
                            await write(first + b"".join(pieces))
                            first = b""
            except PodiumError as failure:
                if not started:
                    raise
                await write(events.fail(to_api_error(failure)))

        return EventStream(produce, self._headers())

    def _piece(self, events: ResponseEvents, event: Event) -> bytes:
        if not isinstance(event, QuestionEnded):
            return events.for_event(event)
        error = no_answer_error(event.trace)
        if error is not None:
            raise error
        return events.end(from_trace(event.trace, self.request.ignored))

    async def _planned(self) -> ServedAnswer:
        plan, estimate = await self.service.plan(self.request, self.orchestrator)
        return from_plan(self.orchestrator, plan, estimate, self.frame.trace_id)

    def _headers(self) -> dict[str, str]:
        headers = ignored_header(self.request.ignored)
        return headers if self.request.dry_run else {**headers, "x-podium-trace-id": self.frame.trace_id}
