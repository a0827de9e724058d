"""The sandboxes that one grader uses: one for each event loop, and none for longer than its loop.

A grader may live through several `asyncio.run` calls, and what waits in a sandbox's stock may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from podium.sandbox.enclosure import Enclosure
from podium.sandbox.sandbox import Sandbox


class Sandboxes:
    """Makes a sandbox where it is first needed. All are equal: they are no part of what a grader is."""

    def __init__(self, walls: Enclosure | None = None) -> None:
        """Nothing is made yet.

        Args:
            walls: as for `Sandbox`.
        """
        self._walls = walls
        self._held: dict[asyncio.AbstractEventLoop, tuple[Sandbox, AsyncGenerator[Sandbox]]] = {}

    async def sandbox(self) -> Sandbox:
        """The sandbox of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held = {known: pair for known, pair in self._held.items() if not known.is_closed()}
            holder = _hold(self._walls)
            # Nothing in the first step of `_hold` waits, so two first calls cannot both come here.
            self._held[loop] = (await anext(holder), holder)
        return self._held[loop][0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sandboxes)

    __hash__ = None  # type: ignore[assignment]


async def _hold(walls: Enclosure | None) -> AsyncGenerator[Sandbox]:
    """A sandbox as a generator: a loop that shuts down closes its generators, and so the sandbox with it."""
    sandbox = Sandbox(walls)
    try:
        yield sandbox
    finally:
        await sandbox.close()
