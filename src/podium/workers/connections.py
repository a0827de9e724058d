"""The HTTP connections that a pool's endpoints share: one client session for each event loop.

A pool may live through several `asyncio.run` calls, and connections may not. The HTTP client is imported
with the first call, so that a pool that is only listed costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


class Connections:
    """Opens a session where it is first needed; closing is final for the running loop's session alone."""

    def __init__(self) -> None:
        self._held: dict[
            asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[aiohttp.ClientSession]]
        ] = {}

    async def session(self) -> aiohttp.ClientSession:
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None or held[0].closed:
            self._held = {known: pair for known, pair in self._held.items() if not known.is_closed()}
            holder = _hold()
            # Nothing in the first step of `_hold` waits, so two first calls cannot both come here.
            held = self._held[loop] = (await anext(holder), holder)
        return held[0]

    async def close(self) -> None:
        """Close the running loop's session. Calling twice is fine, and a later call opens a new one."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()


async def _hold() -> AsyncGenerator[aiohttp.ClientSession]:
    """A session as a generator: a loop that shuts down closes its generators, and so the session with it."""
    import aiohttp  # noqa: PLC0415

    # No limit here: how many calls a worker takes at once is the executor's to decide.
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    try:
        yield session
    finally:
        await session.close()
