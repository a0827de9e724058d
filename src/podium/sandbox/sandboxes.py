"""The sandboxes that one grader or worker uses: one for each event loop, and none for longer than its loop.

Either may live through several `asyncio.run` calls, and what waits in a sandbox's stock may not.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial

from podium.per_loop import PerLoop
from podium.sandbox.isolation import Isolation
from podium.sandbox.sandbox import Sandbox


class Sandboxes:
    """Makes a sandbox where it is first needed. All are equal: they are no part of what a grader is."""

    def __init__(self, walls: Isolation | None = None) -> None:
        """Nothing is made yet.

        Args:
            walls: as for `Sandbox`.
        """
        self._sandboxes = PerLoop(partial(_hold, walls))

    async def sandbox(self) -> Sandbox:
        """The sandbox of the running event loop."""
        return await self._sandboxes.get()

    async def close(self) -> None:
        """End that of the running event loop. Calling twice is fine, and a later use makes a new one."""
        await self._sandboxes.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sandboxes)

    __hash__ = None  # type: ignore[assignment]


async def _hold(walls: Isolation | None) -> AsyncGenerator[Sandbox]:
    """A sandbox, as long as its loop."""
    sandbox = Sandbox(walls)
    try:
        yield sandbox
    finally:
        await sandbox.close()
