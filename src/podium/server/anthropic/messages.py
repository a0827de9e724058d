"""POST /v1/messages, streamed or not, and the other requests of Anthropic's clients: token counts and HEAD /."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from podium.server.anthropic.messages_body import MessagesBody
from podium.server.anthropic.messages_reply import MessageWriter
from podium.server.api_errors import invalid
from podium.server.prepared_question import PreparedQuestion
from podium.server.question_body import read_question
from podium.server.requests import body_schema, find_caller, read_body, streamed_reply
from podium.server.service import Service
from podium.types import sent_tokens


def add_routes(app: FastAPI, service: Service) -> None:
    """POST /v1/messages and /v1/messages/count_tokens, HEAD /."""

    @app.head("/", include_in_schema=False)
    async def head() -> Response:
        return Response()

    @app.post(
        "/v1/messages",
        response_class=Response,
        responses=streamed_reply("A message", "id", "content"),
        openapi_extra=body_schema(MessagesBody),
    )
    async def create(request: Request) -> Response:
        caller = await find_caller(request)
        body = await read_body(MessagesBody, request)
        if body.max_tokens is None:
            raise invalid("The field 'max_tokens' is missing.", "max_tokens", code="missing_field")
        is_beta = "anthropic-beta" in request.headers or "beta" in request.query_params
        chat_request = await read_question(body, service, caller, ignores_unknown=is_beta)
        question = await PreparedQuestion.open(service, chat_request, caller)
        writer = MessageWriter(question, thinks=body.thinking is not None, names=body.long_names)
        headers = {"request-id": f"req_{question.trace_id}"}
        return await question.reply(writer, request, streams=body.stream, headers=headers)

    @app.post(
        "/v1/messages/count_tokens",
        openapi_extra=body_schema(MessagesBody),
    )
    async def count_tokens(request: Request) -> dict[str, Any]:
        """An estimate: every worker counts in its own way."""
        caller = await find_caller(request)
        body = await read_body(MessagesBody, request)
        messages = await body.read_messages(None, service.store, caller)
        return {"input_tokens": sent_tokens(messages, body.answer_options({}))}
