"""One of a thing for each event loop: sessions, processes, sandboxes.

Their owner may live through several `asyncio.run` calls, and they may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes the thing where it is first needed.

    Args:
        hold: yields it once, and ends it afterwards: a loop that shuts down closes its generators, and so ends what
            they hold. Nothing in its first step may wait, so that two first calls cannot both come there.
    """

    def __init__(self, hold: Callable[[], AsyncGenerator[T]]) -> None:
        self._hold = hold
        self._held: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T]]] = {}

    async def get(self) -> T:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held = {known: pair for known, pair in self._held.items() if not known.is_closed()}
            holder = self._hold()
            self._held[loop] = (await anext(holder), holder)
        return self._held[loop][0]

    async def close(self) -> None:
        """End the running loop's. Calling twice is fine, and a later `get` makes a new one."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()
