"""GET and DELETE /v1/responses/{id} and GET /v1/responses/{id}/input_items, for stored responses."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter, Query, Request

from podium.server.answers import from_trace, no_answer_error
from podium.server.api_errors import error_responses
from podium.server.openai.response_items import find_trace, unknown_response
from podium.server.openai.responses_reply import ResponseFrame, input_items, output_items
from podium.server.service import Service
from podium.trace import Trace

_ERRORS = (400, 401, 404, 429, 503)


def routes(service: Service) -> APIRouter:
    """GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items."""
    router = APIRouter()

    @router.get("/v1/responses/{id}", responses=error_responses(*_ERRORS))
    async def retrieve(request: Request, id: str) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        return _response(await find_trace(id, service, caller, "id"))

    @router.delete("/v1/responses/{id}", responses=error_responses(*_ERRORS))
    async def delete(request: Request, id: str) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        trace = await find_trace(id, service, caller, "id")
        assert service.store is not None
        if not await service.store.delete(trace.id, owner=caller.visible_owner):
            raise unknown_response(id, "id")
        return {"id": id, "object": "response", "deleted": True}

    @router.get("/v1/responses/{id}/input_items", responses=error_responses(*_ERRORS))
    async def read_input(
        request: Request,
        id: str,
        after: str | None = None,
        limit: int = Query(default=20, ge=1, le=100),
        order: Literal["asc", "desc"] = "desc",
    ) -> dict[str, Any]:
        caller = await service.authenticate(request.headers.get("authorization"))
        trace = await find_trace(id, service, caller, "id")
        items = input_items(trace.question, trace.id)
        if order == "desc":
            items.reverse()
        start = next((n + 1 for n, item in enumerate(items) if item["id"] == after), 0)
        page = items[start : start + limit]
        return {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": start + limit < len(items),
        }

    return router


def _response(trace: Trace) -> dict[str, Any]:
    frame = ResponseFrame(
        trace_id=trace.id,
        created=int(datetime.fromisoformat(trace.started_at).timestamp()),
        model=_model(trace),
        question=trace.question,
        metadata=trace.metadata,
        user=trace.user,
        store=True,
        previous=None,
    )
    error = no_answer_error(trace)
    if error is not None:
        return frame.response("failed", error={"code": error.code, "message": error.message})
    answer = from_trace(trace)
    return frame.final(answer, output_items(answer))


def _model(trace: Trace) -> str:
    """The model of a stored response. The trace keeps the planner, not the name that the request used."""
    form, _, worker = trace.planner.partition(":")
    return worker if form == "straight" else "podium"
