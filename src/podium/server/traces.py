"""/api/traces: what was asked, page by page; one trace, whole or event by event; taking one away; all as JSONL.

A key sees the traces that were asked with it, an admin's key all. What a trace is, its own module says.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from podium.errors import APIError, StoreError, UnknownTraceError, UsageError
from podium.server.api_errors import invalid, missing, responses
from podium.server.attendance import GONE
from podium.server.event_stream import EventStream, Write
from podium.server.keys import Caller
from podium.server.live import RecordedSource
from podium.server.service import Service
from podium.server.stream_events import ENDED, StreamEvent, replayed
from podium.server.trace_list import PageQuery, TraceListed, TracePage, TraceQuery, seen_by
from podium.trace import Trace
from podium.trace.jsonl import to_json
from podium.trace.kept import Store

_BEAT_S = 15.0
"""From sign of life to sign of life, where nothing happens: proxies cut what is silent for a minute."""
_SLOW_S = 30.0
"""That a watcher may take for one event, until it is dropped."""
_EVERY_S = 0.5
"""From look to look into the store, for a question that another server answers."""
_LONGEST_S = 20.0
"""Of a stream that waits so; it can be taken up again, and a server that ends need not wait for it longer."""
_CHUNK = 64 * 2**10
"""Bytes of an export that are sent together."""
_WHOLE_ID = re.compile("[0-9a-f]{32}")
_TELLS = {
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
    "description": "Events: started, plan, step_started, text, step_ended, round_ended, ended.",
}
_LINES = {
    "content": {"application/jsonl": {"schema": {"type": "string"}}},
    "description": "A trace a line, oldest first.",
}


def routes(service: Service) -> APIRouter:
    """The routes of the service's traces."""
    router = APIRouter(tags=["traces"])

    @router.get("/api/traces", responses=responses(400, 401, 422, 429, 503))
    async def traces(request: Request, query: Annotated[PageQuery, Query()]) -> TracePage:
        """What was asked, newest first, of what passes every filter that is given."""
        caller = await service.admitted(request.headers.get("authorization"))
        if service.store is None:
            return TracePage(traces=[], next=None, total=0)
        try:
            page = await service.store.page(query.of(caller), query.cursor, query.limit)
        except UsageError as error:
            raise invalid(str(error), "cursor", code="invalid_cursor") from None
        return TracePage(
            traces=[TraceListed.of(row) for row in page.traces], next=page.next, total=page.total
        )

    @router.get(
        "/api/traces/export",
        response_class=Response,
        responses={**responses(400, 401, 404, 422, 429, 503), 200: _LINES},
    )
    async def export(request: Request, query: Annotated[TraceQuery, Query()]) -> Response:
        """The traces that pass the filters, one a line, oldest first, as `podium traces import` reads them."""
        caller = await service.admitted(request.headers.get("authorization"))
        lines = _chunks(_store(service).export(query.of(caller)))
        # What fails before the first line is an ordinary refusal.
        first = await anext(lines, b"")
        return StreamingResponse(
            _after(first, lines),
            media_type="application/jsonl",
            headers={"content-disposition": 'attachment; filename="traces.jsonl"'},
        )

    @router.get(
        "/api/traces/{id}",
        response_class=Response,
        responses={**responses(400, 401, 404, 429, 503), 200: {"model": Trace}},
    )
    async def trace(request: Request, id: str) -> Response:
        """One trace, whole; as much of its id is enough as no other trace shares."""
        caller = await service.admitted(request.headers.get("authorization"))
        found = await _find(_store(service), id, caller)
        return Response(to_json(found), media_type="application/json")

    @router.get(
        "/api/traces/{id}/events",
        response_class=EventStream,
        responses={
            **responses(400, 401, 404, 429, 503),
            200: _TELLS,
            204: {"description": "The last event was seen already: there is no more."},
        },
    )
    async def events(
        request: Request, id: str, last_event_id: Annotated[str | None, Header(max_length=100)] = None
    ) -> Response:
        """What has happened to a question, and what happens, until it has ended; a late watcher gets all of it.

        With `Last-Event-ID` what comes behind that event. Of a question that has ended there are the same events,
        without the pieces of text; behind any of them the last one, which has the whole trace. Where several servers
        share a store, one that does not answer the question itself tells of it when it is kept: the stream ends
        without events after a while, and can be taken up again.
        """
        caller = await service.admitted(request.headers.get("authorization"))
        if last_event_id == ENDED:
            return Response(status_code=204)
        course = None if service.live is None else service.live.find(id, seen_by(caller))
        if course is not None:
            return EventStream(_watching(course, last_event_id), {})
        store = _store(service)
        try:
            found = await _find(store, id, caller)
        except APIError as complaint:
            if complaint.status != 404 or not store.shared or not _WHOLE_ID.fullmatch(id):
                raise
            return EventStream(_waiting(store, id, caller), {})
        return EventStream(_replaying(found, last_event_id), {})

    @router.delete(
        "/api/traces/{id}",
        status_code=204,
        response_class=Response,
        responses=responses(401, 404, 429, 503),
    )
    async def delete(request: Request, id: str) -> Response:
        """Take a trace away, by its whole id."""
        caller = await service.admitted(request.headers.get("authorization"))
        if not await _store(service).delete(id, seen_by(caller)):
            raise _unknown(id)
        if service.live is not None:
            service.live.forget(id)
        return Response(status_code=204)

    return router


def _store(service: Service) -> Store:
    if service.store is None:
        raise missing("This server keeps no traces.")
    return service.store


def _unknown(id_: str) -> APIError:
    return missing(f"There is no trace {id_[:64]!r} that you may see.", "id", code="trace_not_found")


async def _find(store: Store, id_: str, caller: Caller) -> Trace:
    try:
        return await store.get(id_, seen_by(caller))
    except UnknownTraceError:
        raise _unknown(id_) from None
    except UsageError as error:
        raise invalid(str(error), "id", code="ambiguous_id") from None


async def _chunks(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    waiting = bytearray()
    async for line in lines:
        waiting += line.encode() + b"\n"
        if len(waiting) >= _CHUNK:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _send(write: Write, stream_event: StreamEvent | None) -> None:
    """One event, or a sign of life.

    Raises:
        APIError: the watcher does not read; it is dropped.
    """
    try:
        async with asyncio.timeout(_SLOW_S):
            await write(b": still here\n\n" if stream_event is None else stream_event.sent)
    except TimeoutError:
        raise APIError(GONE, "cancelled", "The caller does not read.") from None


def _watching(course: RecordedSource, after: str | None) -> Any:
    async def tell(write: Write) -> None:
        async for stream_event in course.watch(after, _BEAT_S):
            await _send(write, stream_event)

    return tell


def _replaying(trace: Trace, after: str | None) -> Any:
    async def tell(write: Write) -> None:
        for stream_event in replayed(trace):
            if after is None or stream_event.kind == ENDED:
                await _send(write, stream_event)

    return tell


def _waiting(store: Store, id_: str, caller: Caller) -> Any:
    async def tell(write: Write) -> None:
        until = time.monotonic() + _LONGEST_S
        await _send(write, None)
        while time.monotonic() < until:
            try:
                found = await store.get(id_, seen_by(caller))
            except (UnknownTraceError, StoreError):
                await asyncio.sleep(_EVERY_S)
                continue
            await _replaying(found, None)(write)
            return

    return tell
