"""POST /v1/responses: from bytes to the response, whole, as a stream of events, or in the background.

`stored_responses` reads, cancels and deletes stored responses.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.server.answers import encode_reply
from podium.server.api_errors import error_responses, invalid
from podium.server.keys import Caller
from podium.server.openai.background_journal import BackgroundRequest
from podium.server.openai.background_responses import BackgroundResponses
from podium.server.openai.background_stream import stream_background
from podium.server.openai.responses_body import ResponseBody, read_response
from podium.server.openai.responses_reply import ResponseEvents, ResponseFrame, output_items
from podium.server.opened_question import OpenedQuestion
from podium.server.requests import body_schema, parse_body
from podium.server.service import Service
from podium.server.streaming import DONE, EventStream, Write, cancel_on_disconnect

_STREAMED_SHARE = 0.95
"""Share of the time limit of a request after which the stream of a background response ends, without an error: the
client reads on with GET."""
_ERRORS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
_REPLY = {
    "description": "A response; with `stream`, its events as server-sent events.",
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["id", "object", "status", "output"]}},
        "text/event-stream": {"schema": {"type": "string"}},
    },
}


def routes(service: Service, background: BackgroundResponses) -> APIRouter:
    """POST /v1/responses; `background` makes the responses in the background."""
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
        if body.background:
            return await _start(body, service, caller, background)
        response = await _open(body, service, caller)
        if body.stream:
            return response.streamed()
        async with cancel_on_disconnect(request.receive):
            return await response.whole()

    return router


async def _open(body: ResponseBody, service: Service, caller: Caller) -> _OpenedResponse:
    """Check a request and prepare its response, without running anything.

    Raises:
        APIError: the request cannot be honoured.
    """
    request = await read_response(body, service, caller)
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
    runner = await service.open_runner(request, caller)
    return _OpenedResponse(OpenedQuestion(service, request, caller, runner, frame.trace_id), frame)


async def _start(
    body: ResponseBody, service: Service, caller: Caller, background: BackgroundResponses
) -> Response:
    """Begin a response in the background. The reply is the queued response, or the stream of its events."""
    if service.store is None or body.store is False:
        why = "this server keeps no traces" if service.store is None else "it is kept: leave store out"
        raise invalid(f"background: a response in the background can be read only if {why}.", "background")
    opened = await _open(body, service, caller)
    request, frame = opened.question.request, opened.frame
    if request.dry_run:
        raise invalid("background: a dry run calls no worker; leave background out.", "background")
    if request.plan_id is not None:
        raise invalid(
            "background: a plan that waited for approval runs at once; leave background out.", "background"
        )
    echo = {**frame.echo, "background": True}
    kept = BackgroundRequest.of(request, frame.previous, echo)
    row = await background.start(frame.trace_id, kept, caller, opened.question.runner)
    if body.stream:
        seconds = _STREAMED_SHARE * service.settings.serve.timeout
        return stream_background(row, service, background, headers=opened.question.headers, seconds=seconds)
    content = json.dumps(kept.frame(row).response("queued"), separators=(",", ":")).encode()
    return Response(content, media_type="application/json", headers=opened.question.headers)


@dataclass(frozen=True, slots=True)
class _OpenedResponse:
    """One request that is ready to run, and the fields of its response that repeat the request."""

    question: OpenedQuestion
    frame: ResponseFrame

    async def whole(self) -> Response:
        """The response in one piece."""
        answer = await self.question.answer()
        response = self.frame.final(answer, output_items(answer))
        headers = {**self.question.headers, "x-podium-cost-usd": f"{answer.cost_usd:.6f}"}
        return Response(encode_reply(response), media_type="application/json", headers=headers)

    def streamed(self) -> Response:
        """The response as a stream of events."""

        question = self.question
        direct = question.request.worker is not None
        events = ResponseEvents(self.frame, question.runner.pool.profiles, direct=direct)

        async def produce(write: Write) -> None:
            await question.write(events, write)
            await write(DONE)

        return EventStream(
            produce,
            question.headers,
            heartbeat=events.heartbeat,
            fail=lambda error: events.start() + events.fail(error) + DONE,
        )
