"""Reads, cancels and deletes stored responses, also while they are made in the background.

GET and DELETE /v1/responses/{id}, POST /v1/responses/{id}/cancel.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse, Response

from podium.server.api_errors import invalid
from podium.server.approval import expiry
from podium.server.background import BackgroundQuestions
from podium.server.keys import Caller
from podium.server.openai.response_items import find_background, find_trace, unknown_response
from podium.server.openai.responses import stream_response
from podium.server.openai.responses_reply import ResponseFrame, response_usage
from podium.server.podium_details import details_of
from podium.server.requests import RequestCaller, streamed_reply
from podium.server.served_answer import answer_from_plan, answer_from_trace, no_answer_error
from podium.server.service import Service
from podium.trace import Trace
from podium.types import Spent


def add_routes(app: FastAPI, service: Service, background: BackgroundQuestions) -> None:
    async def read(id: str, caller: Caller) -> dict[str, Any]:
        row = await find_background(id, service.store, caller)
        if row is not None:
            return ResponseFrame.of_trace(row.trace).response("in_progress" if row.begun else "queued")
        return _ended_response(await find_trace(id, service.store, caller, "id"))

    @app.get(
        "/v1/responses/{id}",
        response_class=Response,
        responses=streamed_reply("The response", "id", "object", "status", "output"),
    )
    async def retrieve(
        caller: RequestCaller,
        id: str,
        stream: bool = False,
        starting_after: int | None = Query(default=None, ge=0),
    ) -> Response:
        if not stream:
            return JSONResponse(await read(id, caller))
        if await find_background(id, service.store, caller) is None:
            await find_trace(id, service.store, caller, "id")
        after = -1 if starting_after is None else starting_after
        return stream_response(background, id.removeprefix("resp_"), caller, after=after)

    @app.post("/v1/responses/{id}/cancel")
    async def cancel(caller: RequestCaller, id: str) -> dict[str, Any]:
        row = await find_background(id, service.store, caller)
        if row is not None:
            await background.cancel(row.trace.id)
        elif not ResponseFrame.of_trace(await find_trace(id, service.store, caller, "id")).echoed.background:
            raise invalid("Only a response in the background can be cancelled; this one is finished.", "id")
        return await read(id, caller)

    @app.delete("/v1/responses/{id}")
    async def delete(caller: RequestCaller, id: str) -> dict[str, Any]:
        row = await find_background(id, service.store, caller)
        if row is not None:
            await background.delete(row.trace.id)
            return {"id": id, "object": "response", "deleted": True}
        trace = await find_trace(id, service.store, caller, "id")
        if not await service.store.to_thread(service.store.delete, trace.id, caller.visible_owner):
            raise unknown_response(id, "id")
        return {"id": id, "object": "response", "deleted": True}


def _ended_response(trace: Trace) -> dict[str, Any]:
    frame = ResponseFrame.of_trace(trace)
    if trace.status == "planned" and (workflow := trace.rounds[0].workflow) is not None:
        answer = answer_from_plan(trace, workflow, None, expires=expiry(trace))
        return frame.final(answer)
    background = frame.echoed.background
    cost: dict[str, Any] = {}
    if background:
        cost = {
            "usage": response_usage(Spent(trace.usage, trace.cost_usd)),
            "podium": details_of(trace).model_dump(mode="json"),
        }
    if background and trace.status == "cancelled":
        return frame.response("cancelled", **cost)
    if trace.answer is None:
        error = no_answer_error(trace)
        return frame.response("failed", error={"code": error.code, "message": error.message}, **cost)
    return frame.final(answer_from_trace(trace))
