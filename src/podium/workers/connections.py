"""What the workers of a pool share: the pool's secrets, and one HTTP client session for each event loop.

A pool may be used in several `asyncio.run` calls, but a session may not. aiohttp is imported at the first call, so
listing a pool stays fast.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from podium.per_loop import PerLoop
from podium.workers.redaction import Secrets

if TYPE_CHECKING:
    import aiohttp


class Connections:
    """Opens a session at the first call of each event loop.

    Args:
        secrets: secrets that are removed from all messages and responses. Default: the passwords of the environment's
            proxies.
    """

    def __init__(self, secrets: Secrets | None = None) -> None:
        self.secrets = Secrets.of_proxies() if secrets is None else secrets
        sessions = PerLoop(_open)
        self.session = sessions.get
        """Awaits the session of the running event loop. The first call opens it."""
        self.close = sessions.close
        """Closes the running loop's session. Calling this twice is fine. A later call opens a new session."""


async def _open() -> AsyncGenerator[aiohttp.ClientSession]:
    import aiohttp  # noqa: PLC0415

    from podium.workers.connector import Connector  # noqa: PLC0415

    session = aiohttp.ClientSession(
        connector=Connector(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    try:
        yield session
    finally:
        await session.close()
