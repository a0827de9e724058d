"""A port on loopback that takes connections, refuses them or is deaf to them, and is ours through all of it.

Connections go to a protocol of somebody else's. Everything here happens at once, in the event loop's own thread.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

HOST = "127.0.0.1"
_WAITING = 1024
"""Connections that may wait until they are taken."""


class Port:
    """Refuses when made."""

    def __init__(
        self,
        number: int,
        protocol: Callable[[], asyncio.BaseProtocol],
        encryption: ssl.SSLContext | None = None,
    ) -> None:
        """Bind the port; 0: a free one.

        Raises:
            OSError: somebody else has it.
        """
        self._protocol = protocol
        self._encryption = encryption
        self._loop = asyncio.get_running_loop()
        self._socket = _bound(number)
        self.number: int = self._socket.getsockname()[1]
        self._fillers: list[socket.socket] = []
        self._coming: set[asyncio.Task[None]] = set()

    def take(self) -> None:
        """Connections are taken from now on."""
        self._empty()
        self._socket.listen(_WAITING)
        self._loop.add_reader(self._socket, self._accept)

    def refuse(self) -> None:
        """Connections are refused from now on; those that stand are not touched."""
        self._stop()
        # Bound and not listening, it refuses, and nobody else gets the port meanwhile.
        self._socket = _bound(self.number)

    def deafen(self) -> None:
        """Connections are neither taken nor refused from now on.

        On Linux the queue of those that wait is full, so that connecting itself hangs; elsewhere the connection may
        stand, and nobody reads from it.
        """
        self.refuse()
        self._socket.listen(0)
        for _ in range(2):
            filler = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            filler.setblocking(False)
            filler.connect_ex((HOST, self.number))
            self._fillers.append(filler)

    def close(self) -> None:
        """Give the port back. Calling twice is fine."""
        self._stop()

    @property
    def coming(self) -> bool:
        """Whether connections were taken that do not stand yet, as in the middle of a TLS handshake."""
        return bool(self._coming)

    def _stop(self) -> None:
        self._empty()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        for each in self._coming:
            each.cancel()

    def _empty(self) -> None:
        while self._fillers:
            self._fillers.pop().close()

    def _accept(self) -> None:
        for _ in range(_WAITING):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._welcome(connection))
            self._coming.add(task)
            task.add_done_callback(self._coming.discard)

    async def _welcome(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._encryption)
        except OSError:
            # The client went away, or did not trust our certificate: its own tests say so.
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


def _bound(number: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, number))
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound
