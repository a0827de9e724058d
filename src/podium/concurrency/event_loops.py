"""Objects that live as long as their event loop, an event loop in a thread, for programs that are not async, and the
loop of a command that serves.

The owner of an HTTP session, a database pool or a pool of sandboxes may be used in several `asyncio.run` calls; an
object that belongs to one loop may not.
"""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from podium.errors import UsageError

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes the object at its first use in a loop. `make` yields it once, and closes it afterwards; a loop that shuts
    down closes its generators. It may not await before its `yield`, so that two concurrent first uses cannot make two
    objects."""

    def __init__(self, make: Callable[[], AsyncGenerator[T]]) -> None:
        self._make = make
        self._made: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T]]] = {}

    async def get(self) -> T:
        """The object of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            self._made = {known: pair for known, pair in self._made.items() if not known.is_closed()}
            maker = self._make()
            self._made[loop] = (await anext(maker), maker)
        return self._made[loop][0]

    async def close(self) -> None:
        """Close the object of the running loop. Calling twice is fine, and a later `get` makes a new one."""
        made = self._made.pop(asyncio.get_running_loop(), None)
        if made is not None:
            await made[1].aclose()


class LoopThread:
    """An event loop in a thread of this name, which runs coroutines for other threads and loops. It ends with `close`,
    or with the process."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: an object that was not closed must not keep a notebook from ending.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._loop.is_closed()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work`; the calling thread waits for its result. An interrupt (Ctrl-C) cancels it and waits for its end,
        after which the caller may close what it used. If the loop has ended, a `UsageError` is raised."""
        if self.closed:
            work.close()
            raise UsageError("It was closed before this call; open it again.")
        tasks: list[asyncio.Task[T]] = []
        ended = threading.Event()

        def start() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: ended.set())

        def stop() -> None:
            if tasks:
                tasks[0].cancel()
            else:  # The interrupt came before the start.
                work.close()
                ended.set()

        try:
            self._loop.call_soon_threadsafe(start)
            ended.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(stop)
            ended.wait()
            raise
        return tasks[0].result()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and wait for its result. Cancelling the caller cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the loop and its thread. Calling twice is fine."""
        if not self.closed:
            self.call(self._loop.shutdown_asyncgens())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                continue  # A task raised it, and asyncio stops the loop for it. It reaches the caller as the task's.
            return


def run_event_loop(serving: Coroutine[Any, Any, bool]) -> bool:
    """Run what serves until a signal ends it, on the fastest event loop available, with as many connections as the
    system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - not on every system
    except ImportError:
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(serving)
