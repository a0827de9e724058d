"""Opens the connections of a session, and limits how many to one address are being opened at the same time.

This is a separate file because aiohttp is imported only at the first call (`connections`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

OPENING = 128
"""The most connections to one address that are being opened at the same time."""
_IDLE_S = 4.0
"""The longest idle time after which a connection is used again. llama.cpp, uvicorn and others close a connection after
5 s, and a call that is sent at that moment fails."""


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
