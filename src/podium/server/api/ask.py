"""POST /api/ask starts a question that runs in the background; DELETE /api/ask/{id} cancels it. Used by the viewer.

Clients follow the question at /api/traces/{id}/events. When the server shuts down, the question is cancelled and
recorded as cancelled. A dry run is answered at once with its plan, which may be run by its id or rejected.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from secrets import token_hex
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field, StringConstraints

from podium.errors import APIError, PodiumError
from podium.server.api_errors import error_responses, invalid, not_found
from podium.server.keys import Caller
from podium.server.opened_question import OpenedQuestion
from podium.server.requests import (
    ChatRequest,
    ListOf,
    OwnPart,
    PodiumOptions,
    body_schema,
    parse_body,
    with_options,
)
from podium.server.service import Service
from podium.server.streaming import Write, cancel_on_disconnect
from podium.types import Message, Question


class PastMessage(OwnPart):
    """A message before the question."""

    role: Literal["user", "assistant", "system"]
    content: str


class AskBody(PodiumOptions):
    """The body of POST /api/ask: what other routes have in their object `podium`, at its top level."""

    question: Annotated[str, StringConstraints(min_length=1)] | None = None
    """None: that of the plan."""
    history: Annotated[ListOf[PastMessage], Field(max_length=200)] | None = None
    """What was said before, oldest first."""
    max_rounds: int | None = Field(default=None, ge=1, alias="rounds")
    """As budget.rounds; the smaller of the two applies."""


class BackgroundQuestions:
    """The questions that run without a waiting request."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: dict[str, tuple[asyncio.Task[None], Caller]] = {}
        if service.peers is not None:
            service.peers.answers["cancel"] = self._answer

    def start(self, question: OpenedQuestion) -> None:
        """Start a question."""
        (trace_id,) = question.ids

        async def run() -> None:
            try:
                await question.answer(streams=True)
            except PodiumError:
                # No request waits for it. Clients that follow the question see it end without an answer.
                pass
            finally:
                del self._tasks[trace_id]

        self._tasks[trace_id] = asyncio.create_task(run()), question.caller

    async def cancel(self, trace_id: str, caller: Caller) -> bool:
        """Cancel a question of any process of this server. False: it is not running, or belongs to another key."""
        if self._cancel(trace_id, caller.visible_owner):
            return True
        peers = self._service.peers
        if peers is None:
            return False
        return any((await peers.ask("cancel", id=trace_id, owner=caller.visible_owner)).values())

    def _cancel(self, trace_id: str, owner: str | None) -> bool:
        task, caller = self._tasks.get(trace_id, (None, None))
        if task is None or caller is None or owner not in (None, caller.name):
            return False
        _cancel_begun(task)
        return True

    async def _answer(self, arguments: dict[str, Any], write: Write) -> None:
        """Cancel a question for another process; the reply is empty where it does not run here."""
        if self._cancel(arguments["id"], arguments["owner"]):
            await write(b"cancelled")

    async def close(self) -> None:
        """Cancel all questions and wait until they are recorded."""
        tasks = [task for task, _ in self._tasks.values()]
        for task in tasks:
            _cancel_begun(task)
        await asyncio.gather(*tasks, return_exceptions=True)


def _cancel_begun(task: asyncio.Task[None]) -> None:
    """Cancel a task once it has begun: one that never began would leave no trace of its question and its plan."""
    # The loop runs this after the task's first step, which was queued before.
    asyncio.get_running_loop().call_soon(task.cancel)


def routes(service: Service, background: BackgroundQuestions) -> APIRouter:
    """POST /api/ask and DELETE /api/ask/{id}; `background` runs the questions."""
    router = APIRouter()

    @router.post(
        "/api/ask",
        status_code=202,
        responses={
            **error_responses(400, 401, 402, 403, 404, 408, 413, 429, 502, 503),
            200: {"description": "The plan of a dry run: id, text, podium."},
        },
        openapi_extra=body_schema(AskBody),
    )
    async def ask(request: Request, response: Response) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(AskBody, await request.body(), service.parse_lock)
        try:
            asked = ChatRequest(
                await _question(body, service, caller), planner=body.planner, seed=token_hex(8)
            )
            chat_request = with_options(asked, body, service.settings)
            question = await OpenedQuestion.open(service, chat_request, caller)
            if chat_request.dry_run:
                response.status_code = 200
                async with cancel_on_disconnect(request.receive):
                    planned = await question.planned()
                return {"id": planned.trace_id, "text": planned.text, "podium": planned.podium}
            if question.approved is not None:
                # Here, since nobody waits for what the background raises.
                await service.plans.take(question.approved.planned)
                question = replace(question, approved=None)
        except APIError as error:
            if error.param is not None:
                error.param = error.param.removeprefix("podium.").replace("max_rounds", "rounds")
            raise
        background.start(question)
        return {"id": question.ids[0]}

    @router.delete(
        "/api/ask/{id}",
        status_code=204,
        response_class=Response,
        responses=error_responses(401, 404, 429, 503),
    )
    async def cancel(request: Request, id: str) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        if await background.cancel(id, caller):
            return Response(status_code=204)
        try:
            await service.plans.reject(id, caller)
        except APIError as error:
            if error.status != 404:
                raise
            raise not_found(f"You have no running question or waiting plan {id[:64]!r}.", "id") from None
        return Response(status_code=204)

    return router


async def _question(body: AskBody, service: Service, caller: Caller) -> Question:
    if body.question is None:
        if body.plan_id is None:
            raise invalid("The field 'question' is missing.", "question", code="missing_field")
        return (await service.plans.find(body.plan_id, caller)).question
    if not body.question.strip():
        raise invalid("The question is empty: write what you want answered.", "question")
    history = tuple(Message(role=past.role, content=past.content) for past in body.history or ())
    return Question(text=body.question, history=history)
