"""POST /api/ask starts a question that goes on without its caller; DELETE cancels it. For the viewer.

What happens is told at /api/traces/{id}/events. The server's end is the question's: it is cancelled and recorded so.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field, StringConstraints

from podium.errors import APIError, PodiumError
from podium.orchestrator import Orchestrator
from podium.server.api_errors import error_responses, invalid, missing
from podium.server.keys import Caller
from podium.server.requests import (
    Body,
    BudgetLimits,
    ChatRequest,
    Name,
    Names,
    PodiumOptions,
    parse_body,
    to_budget,
    to_early_stop,
    to_steps,
)
from podium.server.service import Service
from podium.types import Question


class AskBody(Body):
    """A question."""

    question: Annotated[str, StringConstraints(min_length=1)]
    planner: Name | None = None
    """None: the configured one."""
    allow: Names | None = None
    deny: Names | None = None
    budget: BudgetLimits | None = None
    max_steps: int | None = Field(default=None, ge=1)
    early_stop: bool | None = None
    rounds: int | None = Field(default=None, ge=1)
    """As budget.rounds; of the two the smaller holds."""


class BackgroundQuestions:
    """The questions that go on without their caller."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: dict[str, tuple[asyncio.Task[None], Caller]] = {}

    def start(self, asked: ChatRequest, caller: Caller, by: Orchestrator) -> str:
        """Begin; gives the id of the trace."""
        trace_id = uuid4().hex

        async def run() -> None:
            try:
                await self._service.answer(asked, caller, trace_id=trace_id, by=by, streams=True)
            except PodiumError:
                # There is nobody to tell: whoever follows the question sees it end without an answer.
                pass
            finally:
                del self._tasks[trace_id]

        self._tasks[trace_id] = asyncio.create_task(run()), caller
        return trace_id

    def cancel(self, trace_id: str, caller: Caller) -> bool:
        """Cancel a question; False: there is none that runs, or it is another's."""
        task, owner = self._tasks.get(trace_id, (None, None))
        if task is None or owner is None or not (caller.admin or owner.name == caller.name):
            return False
        task.cancel()
        return True

    async def close(self) -> None:
        """Cancel all, and wait until they are recorded."""
        tasks = [task for task, _ in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def routes(service: Service, background: BackgroundQuestions) -> APIRouter:
    """The routes on `service`; what they start, `background` ends."""
    router = APIRouter()
    wanted = {"required": True, "content": {"application/json": {"schema": AskBody.model_json_schema()}}}

    @router.post(
        "/api/ask",
        status_code=202,
        responses=error_responses(400, 401, 402, 403, 404, 408, 413, 429, 503),
        openapi_extra={"requestBody": wanted},
    )
    async def ask(request: Request) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        body = await parse_body(AskBody, await request.body(), service.parse_lock)
        try:
            asked = _asked(body, service)
            by = await service.orchestrator(asked, caller)
        except APIError as error:  # Here the fields stand by themselves.
            if error.param is not None:
                error.param = error.param.removeprefix("podium.").replace("max_rounds", "rounds")
            raise
        return {"id": background.start(asked, caller, by)}

    @router.delete(
        "/api/ask/{id}",
        status_code=204,
        response_class=Response,
        responses=error_responses(401, 404, 429, 503),
    )
    async def cancel(request: Request, id: str) -> Response:
        caller = await service.authenticate(request.headers.get("authorization"))
        if not background.cancel(id, caller):
            raise missing(f"No question {id[:64]!r} runs that you asked.", "id")
        return Response(status_code=204)

    return router


def _asked(body: AskBody, service: Service) -> ChatRequest:
    if not body.question.strip():
        raise invalid("The question is empty: write what you want answered.", "question")
    wanted = PodiumOptions(
        budget=body.budget, max_rounds=body.rounds, max_steps=body.max_steps, early_stop=body.early_stop
    )
    return ChatRequest(
        question=Question(text=body.question),
        budget=to_budget(wanted, service.settings),
        allow=body.allow,
        deny=body.deny or (),
        planner=body.planner,
        max_steps=to_steps(wanted, service.settings),
        early_stop=to_early_stop(wanted, service.settings),
        seed=token_hex(8),
    )
