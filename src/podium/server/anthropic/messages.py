"""POST /v1/messages, streamed or not, and the other requests of Anthropic's clients: token counts and HEAD /."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.server.anthropic.messages_body import MessagesBody, read_messages, to_messages, to_options
from podium.server.anthropic.messages_reply import MessageWriter
from podium.server.api_errors import error_responses, invalid
from podium.server.prepared_question import PreparedQuestion
from podium.server.requests import (
    QUESTION_ERRORS,
    authorization_of,
    body_schema,
    parse_body,
    streamed_reply,
)
from podium.server.routing import QuestionRoute
from podium.server.service import Service
from podium.types import sent_tokens


def routes(service: Service) -> APIRouter:
    """POST /v1/messages and /v1/messages/count_tokens, HEAD /."""
    router = APIRouter(route_class=QuestionRoute)

    @router.head("/", include_in_schema=False)
    async def head() -> Response:
        return Response()

    @router.post(
        "/v1/messages",
        response_class=Response,
        responses={**streamed_reply("A message", "id", "content"), **error_responses(*QUESTION_ERRORS)},
        openapi_extra=body_schema(MessagesBody),
    )
    async def create(request: Request) -> Response:
        caller = await service.keys.authenticate(authorization_of(request))
        body = await parse_body(MessagesBody, await request.body(), service.parse_lock)
        if body.max_tokens is None:
            raise invalid("The field 'max_tokens' is missing.", "max_tokens", code="missing_field")
        is_beta = "anthropic-beta" in request.headers or "beta" in request.query_params
        chat_request = await read_messages(body, service, caller, is_beta=is_beta)
        question = await PreparedQuestion.open(service, chat_request, caller)
        writer = MessageWriter(question, thinks=body.thinking is not None, names=body.long_names)
        headers = {"request-id": f"req_{question.ids[0]}"}
        return await question.reply(writer, request, streams=body.stream, headers=headers)

    @router.post(
        "/v1/messages/count_tokens",
        responses=error_responses(*QUESTION_ERRORS),
        openapi_extra=body_schema(MessagesBody),
    )
    async def count_tokens(request: Request) -> dict[str, Any]:
        """An estimate: every worker counts in its own way."""
        await service.keys.authenticate(authorization_of(request))
        body = await parse_body(MessagesBody, await request.body(), service.parse_lock)
        return {"input_tokens": sent_tokens(to_messages(body), to_options(body, {}))}

    return router
