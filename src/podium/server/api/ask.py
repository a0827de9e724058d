"""POST /api/ask starts a question that runs in the background; DELETE /api/ask/{id} cancels it. Used by the viewer.

Clients follow the question at /api/traces/{id}/events. When the server shuts down, the question is cancelled and
recorded as cancelled. A dry run is answered at once with its plan, which may be run by its id or rejected.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import Response
from pydantic import Field, StringConstraints

from podium.errors import APIError
from podium.server.api_errors import invalid, not_found
from podium.server.background import BackgroundQuestions
from podium.server.keys import Caller
from podium.server.prepared_question import PreparedQuestion
from podium.server.requests import (
    ChatRequest,
    ListOf,
    Name,
    PodiumField,
    PodiumOptions,
    RequestCaller,
    body_schema,
    read_body,
)
from podium.server.service import Service
from podium.server.streaming import until_disconnect
from podium.types import Message, Question


class PastMessage(PodiumField):
    """A message before the question."""

    role: Literal["user", "assistant", "system"]
    content: str


class AskBody(PodiumOptions):
    """The body of POST /api/ask: what other routes have in their object `podium`, at its top level."""

    question: Annotated[str, StringConstraints(min_length=1)] | None = None
    """The question. Default: the plan's."""
    history: Annotated[ListOf[PastMessage], Field(max_length=200)] | None = None
    """What was said before, oldest first."""
    planner: Name | None = None
    """The planner. Default: the configured one."""
    max_rounds: int | None = Field(default=None, ge=1, alias="rounds")
    """The most plans of the question. If `budget.rounds` is smaller, that applies."""


def add_routes(app: FastAPI, service: Service, background: BackgroundQuestions) -> None:
    """POST /api/ask and DELETE /api/ask/{id}; `background` runs the questions."""

    @app.post(
        "/api/ask",
        status_code=202,
        responses={
            200: {"description": "The plan of a dry run: id, text, podium."},
        },
        openapi_extra=body_schema(AskBody),
    )
    async def ask(request: Request, caller: RequestCaller, response: Response) -> dict[str, Any]:
        body = await read_body(AskBody, request)
        try:
            asked = await _question(body, service, caller)
            chat_request = ChatRequest(asked, body, planner=body.planner, seed=token_hex(8))
            question = await PreparedQuestion.open(service, chat_request, caller)
            if body.dry_run:
                response.status_code = 200
                planned = await until_disconnect(request.receive, question.answer_with_plan())
                return {"id": planned.trace_id, "text": planned.text, "podium": planned.podium}
            await background.start(question, streams=True)
        except APIError as error:
            if error.param is not None:
                names = {"model": "planner", "podium.max_rounds": "rounds"}
                error.param = names.get(error.param, error.param.removeprefix("podium."))
            raise
        return {"id": question.trace_id}

    @app.delete("/api/ask/{id}", status_code=204, response_class=Response)
    async def cancel(caller: RequestCaller, id: str) -> Response:
        if await background.has(id, caller):
            await background.cancel(id)
            return Response(status_code=204)
        try:
            await service.plans.reject(id, caller)
        except APIError as error:
            if error.status != 404:
                raise
            raise not_found(f"You have no running question or waiting plan {id[:64]!r}.", "id") from None
        return Response(status_code=204)


async def _question(body: AskBody, service: Service, caller: Caller) -> Question:
    if body.question is None:
        if body.plan_id is None:
            raise invalid("The field 'question' is missing.", "question", code="missing_field")
        return (await service.plans.find(body.plan_id, caller)).question
    if not body.question.strip():
        raise invalid("The question is empty: write what you want answered.", "question")
    history = tuple(Message(role=past.role, content=past.content) for past in body.history or ())
    return Question(text=body.question, history=history)
