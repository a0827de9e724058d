"""A server with an event loop and a thread of its own, for tests that are not async.

Starts and ends it. What is done to the server from other threads, the server itself carries over.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

S = TypeVar("S")


@contextmanager
def in_thread(server: AbstractAsyncContextManager[S, None]) -> Iterator[S]:
    """Run `server` until the block ends. What its start or its end raises is raised here."""
    started: Future[tuple[S, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    ended: Future[None] = Future()

    async def life() -> None:
        async with server as entered:
            stop = asyncio.Event()
            started.set_result((entered, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(life())
        except BaseException as problem:
            (ended if started.done() else started).set_exception(problem)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="podium-testing", daemon=True)
    thread.start()
    entered, loop, stop = started.result()
    try:
        yield entered
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    ended.result()
