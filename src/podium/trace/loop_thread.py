"""An event loop in a thread of its own, for what belongs to one loop and is used from others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines of other threads and loops. Ends with `close`, or with the process."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives; the calling thread waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives; cancelled with whoever waits for it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the loop. Calling twice is fine."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
