"""Opens the connections of a session, only so many to one address at the same time.

A file of its own, because aiohttp is imported at the first call only (`connections`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

OPENING = 128
"""Connections to one address that are being opened at the same time."""
_IDLE_S = 4.0
"""A connection is used again after at most so many idle seconds. llama.cpp, uvicorn and others close it after 5, and a
call that is sent at that moment fails."""


class Connector(aiohttp.TCPConnector):
    """Any number of connections; `connect_timeout` counts from when a call has its turn to open one.

    If 10,000 calls began to connect at once, most would reach the time limit: the event loop and the endpoint's queue
    of new connections need longer than that for all of them.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=_IDLE_S)  # `podium.calls` limits concurrent calls.
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(OPENING))
        """The keys are "HOST:PORT"."""

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own signature
    ) -> Connection:
        """A connection from the pool, or a new one."""
        async with self._turns[req.url.raw_authority]:
            return await super().connect(req, traces, timeout)
