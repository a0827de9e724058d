"""The HTTP connections of a pool's workers: one client session for each event loop, and the secrets that they share.

A pool may be used in several `asyncio.run` calls, but a session may not.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from podium.concurrency.event_loops import PerLoop
from podium.workers.redaction import Secrets

OPENING = 128
"""The most connections to one address that are being opened at the same time."""
_IDLE_S = 4.0
"""The longest idle time after which a connection is used again. llama.cpp, uvicorn and others close a connection after
5 s, and a call that is sent at that moment fails."""


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


class Connector(aiohttp.TCPConnector):
    """Allows any number of connections. A call's `connect_timeout` begins when the call may open a connection.

    If 10,000 calls began to connect at once, most would reach that timeout before the event loop and the endpoint had
    accepted all connections.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=_IDLE_S)  # `podium.calls` limits concurrent calls.
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(OPENING))
        """The turns for opening connections, by "HOST:PORT"."""

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own signature
    ) -> Connection:
        """A connection from the pool, or a new one."""
        async with self._turns[req.url.raw_authority]:
            return await super().connect(req, traces, timeout)


async def _open() -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        connector=Connector(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield session
