"""/api/traces: the list of traces page by page, one trace whole or event by event, deletion, export as JSONL, and what
users say about the answers.

A key sees the traces of its own requests. An admin's key sees all.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from podium.errors import APIError, StoreError, UnknownTraceError, UnreadableTraceError, UsageError
from podium.server.api_errors import invalid, not_found
from podium.server.keys import Caller
from podium.server.requests import Body, RequestCaller, body_schema, read_body
from podium.server.service import Service
from podium.server.stream_events import ENDED, events_of_trace
from podium.server.streaming import CLIENT_CLOSED_REQUEST, HEARTBEAT, EventStream, Write
from podium.store import TraceStore
from podium.store.query import MAX_PAGE, TraceFilters, TraceQuery, TraceSummary
from podium.trace import Outcome, Trace
from podium.trace.explanation import Explanation, explain_answer
from podium.trace.serialization import to_json

_WRITE_TIMEOUT_S = 30.0
"""Seconds that a client may take to read one event before it is dropped."""
_POLL_S = 0.5
"""Seconds between two reads of the store, for a question that another server answers."""
_MAX_WAIT_S = 20.0
"""Seconds after which a stream that polls the store ends. The client can reconnect, and a shutdown is not delayed."""
_CHUNK = 64 * 2**10
"""Bytes of an export that are sent at once."""
_FULL_ID = re.compile("[0-9a-f]{32}")
_EVENTS = {
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
    "description": "Events: started, plan, step_started, text, step_ended, round_ended, ended.",
}
_JSONL = {
    "content": {"application/jsonl": {"schema": {"type": "string"}}},
    "description": "One trace a line, oldest first.",
}


def add_routes(app: FastAPI, service: Service) -> None:
    """The routes under /api/traces."""

    @app.get("/api/traces")
    async def traces(caller: RequestCaller, query: Annotated[PageQuery, Query()]) -> dict[str, Any]:
        """The traces that pass all given filters, newest first; `next` is the cursor of the next page.

        `total` counts the traces of all pages; it comes with the first page, unless there are too many. Of this page,
        `damaged` traces are left out, since their rows in the database are damaged.
        """
        try:
            page = await service.store.to_thread(
                service.store.page, _filters(query, caller), query.cursor, query.limit
            )
        except UsageError as error:
            raise invalid(str(error), "cursor", code="invalid_cursor") from None
        return {
            "traces": [_list_row(row) for row in page.traces],
            "next": page.next,
            "total": page.total,
            "damaged": page.damaged,
        }

    @app.get("/api/traces/export", response_class=Response, responses={200: _JSONL})
    async def export(caller: RequestCaller, query: Annotated[TraceQuery, Query()]) -> Response:
        """The traces that pass the filters, one a line, oldest first, in the form that `podium traces import` reads."""
        chunks = _chunks(service.store.export(_filters(query, caller)))
        # An error before the first line is an ordinary error response.
        first = await service.store.to_thread(next, chunks, b"")
        return StreamingResponse(
            chain([first], chunks),
            media_type="application/jsonl",
            headers={"content-disposition": 'attachment; filename="traces.jsonl"'},
        )

    @app.get("/api/traces/{id}", response_class=Response, responses={200: {"model": Trace}})
    async def trace(caller: RequestCaller, id: str) -> Response:
        """One trace. A unique beginning of its id is enough."""
        stored = await _find(service.store, id, caller)
        return Response(to_json(stored), media_type="application/json")

    @app.get(
        "/api/traces/{id}/events",
        response_class=EventStream,
        responses={
            200: _EVENTS,
            204: {"description": "The last event was seen already: there is no more."},
        },
    )
    async def events(
        caller: RequestCaller, id: str, last_event_id: Annotated[str | None, Header(max_length=100)] = None
    ) -> Response:
        """The events of a question from its beginning until it has ended.

        With `Last-Event-ID` the events after that one. A question that has ended gives the same events without the
        pieces of text; after any of them comes the last one, with the whole trace. Each process of a server sends
        the events of the questions of all of them. Where several servers share a store, a server that does not run
        the question sends its events once the trace is stored; until then its stream ends after a while without
        events, and the client reconnects.
        """
        if last_event_id == ENDED:
            return Response(status_code=204)
        owner, trace = caller.visible_owner, None
        if service.event_logs.find(id, owner) is None:
            try:
                trace = await _find(service.store, id, caller)
            except APIError as error:
                if error.status != 404 or not service.store.shared or not _FULL_ID.fullmatch(id):
                    raise

        async def produce(write: Write) -> None:
            send = partial(_send, write)
            if trace is not None:
                await _replay(send, trace, last_event_id)
            elif not await service.event_logs.send(send, id, owner, last_event_id):
                await _poll(send, service.store, id, owner)

        return EventStream(produce, {})

    @app.get("/api/traces/{id}/explanation")
    async def explanation(caller: RequestCaller, id: str) -> Explanation:
        """Why the question got this answer: the planner's reason, ratings, and what one worker alone would have cost.

        Every figure comes with its source.
        """
        return explain_answer(await _find(service.store, id, caller))

    @app.post("/api/traces/{id}/outcome", openapi_extra=body_schema(OutcomeBody))
    async def outcome(request: Request, caller: RequestCaller, id: str) -> JudgedTrace:
        """Say whether the answer of a trace was right, or take that back. A unique beginning of its id is enough."""
        body = await read_body(OutcomeBody, request)
        with _id_errors_as_api_errors(id):
            judged = await service.store.to_thread(
                service.store.set_outcome, id, body.outcome(caller), caller.visible_owner
            )
        service.planners.mark_outcomes_stale()
        service.event_logs.forget(judged.id)
        return JudgedTrace(id=judged.id, outcome=judged.outcome)

    @app.delete("/api/traces/{id}", status_code=204, response_class=Response)
    async def delete(caller: RequestCaller, id: str) -> Response:
        """Delete a trace, by its full id."""
        if not await service.store.to_thread(service.store.delete, id, caller.visible_owner):
            raise _trace_not_found(id)
        service.event_logs.forget(id)
        return Response(status_code=204)


def _trace_not_found(id_: str) -> APIError:
    return not_found(f"There is no trace {id_[:64]!r} that you may see.", "id", code="trace_not_found")


async def _find(store: TraceStore, id_: str, caller: Caller) -> Trace:
    with _id_errors_as_api_errors(id_):
        return await store.to_thread(store.get, id_, caller.visible_owner)


@contextmanager
def _id_errors_as_api_errors(id_: str) -> Iterator[None]:
    """Turn the store's error about an id into the error that a route sends."""
    try:
        yield
    except UnknownTraceError:
        raise _trace_not_found(id_) from None
    except UnreadableTraceError as error:
        raise invalid(str(error), "id", code="damaged_trace") from None
    except UsageError as error:
        raise invalid(str(error), "id", code="ambiguous_id") from None


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    waiting = bytearray()
    for line in lines:
        waiting += line.encode() + b"\n"
        if len(waiting) >= _CHUNK:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


async def _send(write: Write, content: bytes) -> None:
    """Send an event.

    Raises:
        APIError: the client does not read, and is dropped.
    """
    try:
        async with asyncio.timeout(_WRITE_TIMEOUT_S):
            await write(content)
    except TimeoutError:
        raise APIError(CLIENT_CLOSED_REQUEST, "cancelled", "The caller does not read.") from None


async def _replay(send: Write, trace: Trace, after: str | None = None) -> None:
    events = events_of_trace(trace)
    for event in events if after is None else [*events][-1:]:
        await send(event)


async def _poll(send: Write, store: TraceStore, id_: str, owner: str | None) -> None:
    """Send the events of a question of another server, once its trace is stored."""
    until = time.monotonic() + _MAX_WAIT_S
    await send(HEARTBEAT)
    while time.monotonic() < until:
        try:
            trace = await store.to_thread(store.get, id_, owner)
        except (UnknownTraceError, StoreError):
            await asyncio.sleep(_POLL_S)
        else:
            await _replay(send, trace)
            return


class PageQuery(TraceQuery):
    """A query, and a page of what it finds."""

    limit: int = Field(50, ge=1, le=MAX_PAGE)
    cursor: str | None = Field(None, max_length=1000, description="`next` of the previous page.")


def _filters(query: TraceQuery, caller: Caller) -> TraceFilters:
    """The query, restricted to what the caller may see."""
    conditions = query.model_dump(include=set(TraceQuery.model_fields))
    return TraceFilters(owner=caller.visible_owner, **conditions)


class OutcomeBody(Body):
    """The body of POST /api/traces/{id}/outcome. It replaces what was said before."""

    model_config = ConfigDict(extra="forbid")

    right: bool | None = None
    """Whether the answer was right; null: no verdict."""
    note: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = ""

    def outcome(self, caller: Caller) -> Outcome | None:
        """The outcome that the trace keeps. None if the body has neither a verdict nor a note.

        Raises:
            APIError: 400, the body has no field at all.
        """
        if not self.model_fields_set:
            raise invalid(
                "Give `right`: true, false, or null to take the verdict back; or a `note`.", "right"
            )
        if self.right is None and not self.note:
            return None
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Outcome(right=self.right, note=self.note, by=caller.name, at=now)


class JudgedTrace(BaseModel):
    """The reply: the outcome that a trace has now."""

    id: str
    outcome: Outcome | None


def _list_row(row: TraceSummary) -> dict[str, Any]:
    listed = asdict(row)
    return {
        "id": listed.pop("id"),
        "started_at": listed.pop("started").isoformat(timespec="milliseconds"),
        **listed,
    }
