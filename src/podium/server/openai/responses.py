"""POST /v1/responses: from bytes to the response, whole, as a stream of events, or in the background.

`stored_responses` reads, cancels and deletes stored responses.
"""

from __future__ import annotations

import json
import time

from fastapi import FastAPI, Request
from fastapi.responses import Response

from podium.server.api_errors import invalid
from podium.server.background import BackgroundQuestions
from podium.server.openai.background_responses import start_response, stream_response
from podium.server.openai.responses_body import ResponseBody, read_response
from podium.server.openai.responses_reply import ResponseFrame, ResponseWriter
from podium.server.prepared_question import PreparedQuestion
from podium.server.requests import body_schema, find_caller, read_body, streamed_reply
from podium.server.service import Service

_STREAMED_SHARE = 0.95
"""The share of a request's time limit after which the stream of a background response ends without an error. The client
continues with GET."""


def add_routes(app: FastAPI, service: Service, background: BackgroundQuestions) -> None:
    """POST /v1/responses; `background` makes the responses in the background."""

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
        question = await PreparedQuestion.open(service, await read_response(body, service, caller), caller)
        if body.background:
            return await _start(body, question, background)
        frame = _frame(body, question)
        if question.request.keep:
            question = question.with_metadata(frame.stored_metadata)
        writer = ResponseWriter(frame, question.runner.pool.profiles, direct=question.direct)
        return await question.reply(writer, request, streams=body.stream)


def _frame(body: ResponseBody, question: PreparedQuestion) -> ResponseFrame:
    request = question.request
    return ResponseFrame(
        trace_id=question.ids[0],
        created=int(time.time()),
        model=body.model,
        question=request.question,
        metadata=request.metadata,
        user=request.user,
        store=request.keep,
        previous=body.previous_response_id,
        echo={"safety_identifier": body.safety_identifier, "prompt_cache_key": body.prompt_cache_key},
    )


async def _start(body: ResponseBody, question: PreparedQuestion, background: BackgroundQuestions) -> Response:
    """Begin a response in the background. The reply is the queued response, or the stream of its events."""
    service, request, frame = question.service, question.request, _frame(body, question)
    if request.dry_run:
        raise invalid("background: a dry run calls no worker; leave background out.", "background")
    if request.plan_id is not None:
        raise invalid(
            "background: a plan that waited for approval runs at once; leave background out.", "background"
        )
    frame = await start_response(background, question, frame)
    if body.stream:
        seconds = _STREAMED_SHARE * service.settings.serve.timeout
        return stream_response(
            background, frame.trace_id, question.caller, headers=question.headers, seconds=seconds
        )
    content = json.dumps(frame.response("queued"), separators=(",", ":")).encode()
    return Response(content, media_type="application/json", headers=question.headers)
