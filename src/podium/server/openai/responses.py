"""POST /v1/responses: from bytes to the response, whole or as a stream of events.

`responses_socket` serves the same over a WebSocket. `stored_responses` reads and deletes stored responses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.server.answers import ServedAnswer
from podium.server.api_errors import error_responses
from podium.server.keys import Caller
from podium.server.openai.responses_body import ResponseBody, read_response
from podium.server.openai.responses_reply import ResponseEvents, ResponseFrame, output_items
from podium.server.opened_question import OpenedQuestion
from podium.server.requests import body_schema, parse_body
from podium.server.service import Service
from podium.server.streaming import DONE, EventStream, Write, cancel_on_disconnect
from podium.types import Message

_ERRORS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
_REPLY = {
    "description": "A response; with `stream`, its events as server-sent events.",
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["id", "object", "status", "output"]}},
        "text/event-stream": {"schema": {"type": "string"}},
    },
}


def routes(service: Service) -> APIRouter:
    """POST /v1/responses."""
    router = APIRouter()

    @router.post(
        "/v1/responses",
        response_class=Response,
        responses={200: _REPLY, **error_responses(*_ERRORS)},
        openapi_extra=body_schema(ResponseBody),
    )
    async def respond(request: Request) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(ResponseBody, await request.body(), service.parse_lock)
        response = await open_response(body, service, caller)
        if body.stream:
            return response.streamed()
        async with cancel_on_disconnect(request.receive):
            return await response.whole()

    return router


async def open_response(
    body: ResponseBody,
    service: Service,
    caller: Caller,
    kept: Mapping[str, tuple[Message, ...]] | None = None,
) -> OpenedResponse:
    """Check a request and prepare its response, without running anything.

    Args:
        kept: conversations that are kept only for this connection, by the id of their last response.

    Raises:
        APIError: the request cannot be honoured.
    """
    request = await read_response(body, service, caller, kept or {})
    frame = ResponseFrame(
        trace_id=request.plan_id or uuid4().hex,
        created=int(time.time()),
        model=body.model,
        question=request.question,
        metadata=request.metadata,
        user=request.user,
        store=request.keep and service.store is not None,
        previous=body.previous_response_id,
        echo={"safety_identifier": body.safety_identifier, "prompt_cache_key": body.prompt_cache_key},
    )
    orchestrator = await service.open_orchestrator(request, caller)
    return OpenedResponse(OpenedQuestion(service, request, caller, orchestrator, frame.trace_id), frame)


@dataclass(frozen=True, slots=True)
class OpenedResponse:
    """One request that is ready to run, and the fields of its response that repeat the request."""

    question: OpenedQuestion
    frame: ResponseFrame

    async def whole(self) -> Response:
        """The response in one piece."""
        answer = await self.question.answer()
        response = self.frame.final(answer, output_items(answer))
        headers = {**self.question.headers, "x-podium-cost-usd": f"{answer.cost_usd:.6f}"}
        content = json.dumps(response, separators=(",", ":")).encode()
        return Response(content, media_type="application/json", headers=headers)

    def streamed(self) -> Response:
        """The response as a stream of events."""

        async def produce(write: Write) -> None:
            await self.write_events(write)
            await write(DONE)

        return EventStream(produce, self.question.headers)

    async def write_events(self, write: Write) -> ServedAnswer | None:
        """Make the response and write its events. Returns the same as `OpenedQuestion.write`."""
        question = self.question
        direct = question.request.worker is not None
        events = ResponseEvents(self.frame, question.orchestrator.pool.profiles, direct=direct)
        return await question.write(events, write)
