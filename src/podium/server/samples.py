"""One question asked several times at once: its independent answers, awaited together or followed event by event.

No task outlives its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.server.keys import Caller
from podium.server.service import ChatRequest, Service
from podium.trace import Trace

Take = Callable[[], Awaitable[list[tuple[int, Event]]]]
"""Waits for something to happen; gives all that has, each with the number of its answer."""


async def ask_all(
    service: Service, asked: ChatRequest, caller: Caller, ids: Sequence[str], by: Orchestrator
) -> list[Trace]:
    """The traces of one answer for each id.

    Raises:
        UsageError: it cannot be asked so.
    """
    if len(ids) == 1:
        return [await service.answer(asked, caller, trace_id=ids[0], by=by)]
    ended: dict[int, Trace] = {}
    async with following(service, asked, caller, ids, by, streams=False) as take:
        while len(ended) < len(ids):
            for number, event in await take():
                if isinstance(event, QuestionEnded):
                    ended[number] = event.trace
    return [ended[number] for number in range(len(ids))]


@asynccontextmanager
async def following(
    service: Service,
    asked: ChatRequest,
    caller: Caller,
    ids: Sequence[str],
    by: Orchestrator,
    *,
    streams: bool = True,
) -> AsyncIterator[Take]:
    """Asks, and gives the function that tells what happens; it raises what asking raises.

    What is still asked when the block is left is cancelled.
    """
    queue: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()

    async def ask(number: int, trace_id: str) -> None:
        def tell(event: Event) -> None:
            queue.put_nowait((number, event))

        try:
            await service.answer(
                asked, caller, trace_id=trace_id, by=by, sample=number, on_event=tell, streams=streams
            )
        except Exception as error:  # Raised again by whoever takes: a task of its own would swallow it.
            queue.put_nowait((number, error))

    async def take() -> list[tuple[int, Event]]:
        batch = [await queue.get()]
        while not queue.empty():
            batch.append(queue.get_nowait())
        events: list[tuple[int, Event]] = []
        for number, happened in batch:
            if isinstance(happened, Exception):
                raise happened
            events.append((number, happened))
        return events

    tasks = [asyncio.create_task(ask(number, trace_id)) for number, trace_id in enumerate(ids)]
    try:
        yield take
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
