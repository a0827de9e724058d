"""The events of a response that is made in the background, for clients that come, go and come back, at any server.

The events are made from what is kept of the response, so they and their numbers are the same for each client, also
after another server took the response over. The answer's text comes whole: a server that is killed could not repeat
its pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType

from podium.errors import UnknownTraceError
from podium.server.answers import from_trace, no_answer_error
from podium.server.openai.background_journal import BackgroundRequest, read_events
from podium.server.openai.background_responses import BackgroundResponses
from podium.server.openai.responses_reply import ResponseWriter
from podium.server.service import Service
from podium.server.streaming import DONE, EventStream, Write
from podium.team import PlanReady
from podium.trace import Trace
from podium.trace.background_table import BackgroundRow
from podium.types import Profile


def stream_background(
    row: BackgroundRow,
    service: Service,
    background: BackgroundResponses,
    *,
    after: int = -1,
    headers: Mapping[str, str] = MappingProxyType({}),
    seconds: float | None = None,
) -> EventStream:
    """The reply that streams the events.

    Args:
        after: the number of the last event that the client has.
        seconds: when the stream ends at the latest; None: with the response.
    """

    async def produce(write: Write) -> None:
        try:
            async with asyncio.timeout(seconds):
                number = -1
                async for event in background_events(row, service, background):
                    number += 1
                    if number > after:
                        await write(event)
        except TimeoutError:
            pass

    return EventStream(produce, headers)


async def background_events(
    row: BackgroundRow, service: Service, background: BackgroundResponses
) -> AsyncIterator[bytes]:
    """The events, each as one server-sent event, from the first. Ends after the last, when the response is deleted, and
    when this server shuts down."""
    kept = BackgroundRequest.read(row)
    names: list[str] = []
    profiles: list[Profile] = []
    plans: dict[int, PlanReady] = {}
    events = ResponseWriter(kept.frame(row), profiles, direct=kept.request.worker is not None)
    for event in _split(events.queue()):
        yield event
    number, begun, now = 0, False, row
    while True:
        # The row is read first: if it has ended, no entry follows those that are read then.
        entries = await background.table.entries(row.id, number)
        number += len(entries)
        if not begun and (now.holder or entries or now.ended is not None):
            begun = True
            yield events.begin()
        for made in read_events(entries, names, plans):
            profiles += [Profile(name=name) for name in names[len(profiles) :]]
            for event in _split(events.for_event(made)):
                yield event
        if now.ended is not None:
            for event in _split(await _end(row.id, kept, events, service)):
                yield event
            return
        if not await background.changed(row.id):
            return
        found = await background.table.find(row.id)
        if found is None:
            return
        now = found


async def _end(id: str, kept: BackgroundRequest, events: ResponseWriter, service: Service) -> bytes:
    try:
        trace: Trace = await service.store.get(id)
    except UnknownTraceError:  # Deleted a moment ago.
        return DONE
    error = no_answer_error(trace)
    if trace.status == "cancelled":
        return events.cancel()
    return events.end(from_trace(trace, kept.request.ignored)) if error is None else events.fail(error)


def _split(content: bytes) -> list[bytes]:
    """The single events in `content`."""
    return [event + b"\n\n" for event in content.split(b"\n\n") if event]
