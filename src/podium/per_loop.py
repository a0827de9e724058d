"""One object for each event loop: an HTTP session, a database pool, a pool of sandboxes.

Its owner may be used in several `asyncio.run` calls; an object that belongs to one loop may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes the object at its first use in a loop.

    Args:
        make: yields the object once, and closes it afterwards; a loop that shuts down closes its generators. It may not
            await before its `yield`, so that two concurrent first uses cannot make two objects.
    """

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
