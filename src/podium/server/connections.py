"""One connection of a client: what uvicorn's has no limits for, a head that never ends and a client that says nothing.

What it is asked, and with what answer, is the application's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

_HEAD_BYTES = 128 * 2**10
"""Of one request's first line and headers, or of what else comes between two pieces of its body; the guards refuse
less than that in better words."""
_PIECE = 32 * 2**10
"""Bytes that are parsed at once; a head is measured to within as many."""
IDLE_S = 60.0
"""Without a request that is being answered, after which a connection is closed: as between requests, so in the
middle of a head, or of a body that nobody reads any more."""


class Connection(HttpToolsProtocol):
    """A connection that is closed when its head is too long, or by `close_idle`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head = 0
        self._passed = False
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._idle_since = self.loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            self._passed = False
            super().data_received(piece)
            # A piece in which a head or a body's data ended may hold the next head, but no more of it than a piece.
            self._head = 0 if self._passed else self._head + len(piece)
            if self._head > _HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The request's headers are too long.")

    def on_headers_complete(self) -> None:
        self._passed = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._passed = True
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def idle_s(self, now: float) -> float:
        """Seconds for which no request has been answered here."""
        if self.cycle is not None and not self.cycle.response_complete:
            return 0.0
        return now - self._idle_since


def close_idle(state: ServerState) -> None:
    """Close the connections that have been idle for too long."""
    now = asyncio.get_running_loop().time()
    for connection in tuple(state.connections):
        if isinstance(connection, Connection) and connection.idle_s(now) > IDLE_S:
            connection.transport.close()
