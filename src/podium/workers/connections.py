"""What a pool's workers share towards the world: its secrets, and one HTTP client session for each event loop.

A pool may live through several `asyncio.run` calls, and connections may not. The HTTP client is imported
with the first call, so that a pool that is only listed costs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from podium.per_loop import PerLoop
from podium.workers.redaction import Secrets

if TYPE_CHECKING:
    import aiohttp


class Connections:
    """Opens a session where it is first needed; closing is final for the running loop's session alone.

    Args:
        secrets: what no message or response may hold; None: those in the addresses of the environment's proxies.
    """

    def __init__(self, secrets: Secrets | None = None) -> None:
        self.secrets = Secrets.of_proxies() if secrets is None else secrets
        self._sessions = PerLoop(_hold)

    async def session(self) -> aiohttp.ClientSession:
        """The session of the running event loop."""
        session = await self._sessions.get()
        if session.closed:
            await self._sessions.close()
            session = await self._sessions.get()
        return session

    async def close(self) -> None:
        """Close the running loop's session. Calling twice is fine, and a later call opens a new one."""
        await self._sessions.close()


async def _hold() -> AsyncGenerator[aiohttp.ClientSession]:
    """A session, as long as its loop."""
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
