"""POST /v1/messages, streamed or not, and the other requests of Anthropic's clients: token counts and HEAD /."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.server.answers import encode_reply
from podium.server.anthropic.messages_body import MessagesBody, read_messages, to_messages, to_options
from podium.server.anthropic.messages_reply import MessageEvents, message_body
from podium.server.api_errors import error_responses, invalid
from podium.server.keys import Caller
from podium.server.opened_question import OpenedQuestion
from podium.server.requests import body_schema, parse_body
from podium.server.service import Service
from podium.server.streaming import EventStream, Write, cancel_on_disconnect
from podium.types import sent_tokens

_ERRORS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)


def routes(service: Service) -> APIRouter:
    """POST /v1/messages and /v1/messages/count_tokens, HEAD /."""
    router = APIRouter()

    @router.head("/", include_in_schema=False)
    async def there() -> Response:
        return Response()

    @router.post(
        "/v1/messages",
        response_class=Response,
        responses={
            200: {"description": "A message; with `stream`, its events."},
            **error_responses(*_ERRORS),
        },
        openapi_extra=body_schema(MessagesBody),
    )
    async def create(request: Request) -> Response:
        caller = await _authenticate(request, service)
        body = await parse_body(MessagesBody, await request.body(), service.parse_lock)
        if body.max_tokens is None:
            raise invalid("The field 'max_tokens' is missing.", "max_tokens", code="missing_field")
        is_beta = "anthropic-beta" in request.headers or "beta" in request.query_params
        chat_request = await read_messages(body, service, caller, is_beta=is_beta)
        runner = await service.open_runner(chat_request, caller)
        question = OpenedQuestion(service, chat_request, caller, runner, chat_request.plan_id or uuid4().hex)
        headers = {**question.headers, "request-id": f"req_{question.trace_id}"}
        if body.stream:
            events = MessageEvents(
                question.trace_id,
                body.model,
                runner.pool.profiles,
                thinks=body.thinking is not None,
                direct=chat_request.worker is not None,
                names=body.long_names,
            )

            async def produce(write: Write) -> None:
                await question.write(events, write)

            return EventStream(
                produce,
                headers,
                heartbeat=events.heartbeat,
                fail=lambda error: events.start() + events.fail(error),
            )
        async with cancel_on_disconnect(request.receive):
            answer = await question.answer()
        content = encode_reply(
            message_body(answer, body.model, thinks=body.thinking is not None, names=body.long_names)
        )
        headers["x-podium-cost-usd"] = f"{answer.cost_usd:.6f}"
        return Response(content, media_type="application/json", headers=headers)

    @router.post(
        "/v1/messages/count_tokens",
        responses=error_responses(*_ERRORS),
        openapi_extra=body_schema(MessagesBody),
    )
    async def count_tokens(request: Request) -> dict[str, Any]:
        """An estimate: every worker counts in its own way."""
        await _authenticate(request, service)
        body = await parse_body(MessagesBody, await request.body(), service.parse_lock)
        return {"input_tokens": sent_tokens(to_messages(body), to_options(body, {}))}

    return router


async def _authenticate(request: Request, service: Service) -> Caller:
    """The caller. Its key is in `authorization`, or in `x-api-key`, where Anthropic's clients send it."""
    key = request.headers.get("x-api-key")
    usual = request.headers.get("authorization")
    return await service.authenticate(f"Bearer {key}" if usual is None and key else usual)
