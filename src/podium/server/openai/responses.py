"""POST /v1/responses and GET /v1/responses/{id}: from bytes to bytes."""

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
from podium.orchestrator import Orchestrator, QuestionEnded
from podium.server.answers import ServedAnswer, from_plan, from_trace, no_answer_error
from podium.server.api_errors import error_responses, to_api_error
from podium.server.keys import Caller
from podium.server.openai.responses_body import ResponseBody, read_response, trace_of
from podium.server.openai.responses_reply import Frame, ResponseEvents, items
from podium.server.requests import ChatRequest, parse_body
from podium.server.service import Service, stream_answers
from podium.server.streaming import EventStream, Write, cancel_on_disconnect
from podium.trace import Trace

_REFUSALS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
_ANSWERED = {
    "description": "A response; with `stream`, its events as server-sent events.",
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["id", "object", "status", "output"]}},
        "text/event-stream": {"schema": {"type": "string"}},
    },
}


def routes(service: Service) -> APIRouter:
    """The routes on `service`."""
    router = APIRouter()
    wanted = {"required": True, "content": {"application/json": {"schema": ResponseBody.model_json_schema()}}}

    @router.post(
        "/v1/responses",
        response_class=Response,
        responses={200: _ANSWERED, **error_responses(*_REFUSALS)},
        openapi_extra={"requestBody": wanted},
    )
    async def respond(request: Request) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(ResponseBody, await request.body(), service.parse_lock)
        asked = await read_response(body, service, caller)
        frame = Frame(
            trace_id=uuid4().hex,
            created=int(time.time()),
            model=body.model,
            question=asked.question,
            metadata=asked.metadata,
            user=asked.user,
            store=asked.keep and service.store is not None,
            previous=body.previous_response_id,
        )
        responding = _Responding(service, asked, caller, await service.orchestrator(asked, caller), frame)
        if body.stream:
            return responding.streamed()
        async with cancel_on_disconnect(request.receive):
            return await responding.whole()

    @router.get("/v1/responses/{id}", responses=error_responses(400, 401, 404, 429, 503))
    async def made(request: Request, id: str) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        trace = await trace_of(id, service, caller, "id")
        frame = Frame(
            trace_id=trace.id,
            created=int(datetime.fromisoformat(trace.started_at).timestamp()),
            model=_model(trace),
            question=trace.question,
            metadata=trace.metadata,
            user=trace.user,
            store=True,
            previous=None,
        )
        refusal = no_answer_error(trace)
        if refusal is not None:
            error = {"code": refusal.code, "message": refusal.message}
            return frame.response("failed", error=error)
        answer = from_trace(trace)
        return frame.ended(answer, items(answer))

    return router


def _model(trace: Trace) -> str:
    """Who was asked, as far as the trace tells: it keeps the planner, not what the request called it."""
    form, _, worker = trace.planner.partition(":")
    return worker if form == "straight" else "podium"


@dataclass(frozen=True, slots=True)
class _Responding:
    """One request on its way to its response."""

    service: Service
    asked: ChatRequest
    caller: Caller
    by: Orchestrator
    frame: Frame

    async def whole(self) -> Response:
        """The response at once."""
        if self.asked.dry_run:
            answer = await self._planned()
        else:
            trace = await self.service.answer(
                self.asked, self.caller, trace_id=self.frame.trace_id, by=self.by
            )
            refusal = no_answer_error(trace)
            if refusal is not None:
                raise refusal
            answer = from_trace(trace)
        response = self.frame.ended(answer, items(answer))
        headers = {**self._headers(), "x-podium-cost-usd": f"{answer.cost_usd:.6f}"}
        content = json.dumps(response, separators=(",", ":")).encode()
        return Response(content, media_type="application/json", headers=headers)

    def streamed(self) -> Response:
        """The response in pieces, as they come."""
        events = ResponseEvents(self.frame, self.by.pool.profiles)

        async def tell(write: Write) -> None:
            if self.asked.dry_run:
                planned = await self._planned()
                await write(events.begun() + events.ended(planned))
                return
            begun = False
            try:
                async with stream_answers(
                    self.service, self.asked, self.caller, [self.frame.trace_id], self.by
                ) as take:
                    ended, first = False, events.begun()
                    while not ended:
                        pieces = []
                        for _, happened in await take():
                            ended = isinstance(happened, QuestionEnded)
                            pieces.append(self._piece(events, happened))
                        if any(pieces):
                            begun = True
                            await write(first + b"".join(pieces))
                            first = b""
            except PodiumError as error:
                if not begun:
                    raise
                await write(events.failed(to_api_error(error)))

        return EventStream(tell, self._headers())

    def _piece(self, events: ResponseEvents, happened: Any) -> bytes:
        if not isinstance(happened, QuestionEnded):
            return events.told(happened)
        refusal = no_answer_error(happened.trace)
        if refusal is not None:
            raise refusal
        return events.ended(from_trace(happened.trace))

    async def _planned(self) -> ServedAnswer:
        plan, expected = await self.service.plan(self.asked, self.by)
        return from_plan(self.by, plan, expected, self.frame.trace_id)

    def _headers(self) -> dict[str, str]:
        return {} if self.asked.dry_run else {"x-podium-trace-id": self.frame.trace_id}
