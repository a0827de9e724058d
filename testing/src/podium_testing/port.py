"""A port on loopback that accepts connections, refuses them or leaves them hanging, and a TLS certificate for it.

The port stays bound through all of it. Connections go to a protocol that the caller gives.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from podium.errors import ConfigError

HOST = "127.0.0.1"
_WAITING = 1024
"""Connections that may wait to be accepted."""


class Port:
    """One port, which refuses connections until `take` is called."""

    def __init__(
        self,
        number: int,
        protocol: Callable[[], asyncio.BaseProtocol],
        encryption: ssl.SSLContext | None = None,
    ) -> None:
        """Bind the port. 0 takes a free one.

        Raises:
            OSError: another process has it.
        """
        self._protocol = protocol
        self._encryption = encryption
        self._loop = asyncio.get_running_loop()
        self._socket = _bind(number)
        self.number: int = self._socket.getsockname()[1]
        self._fillers: list[socket.socket] = []
        self._pending: set[asyncio.Task[None]] = set()

    def take(self) -> None:
        """Accept connections from now on."""
        self._empty()
        self._socket.listen(_WAITING)
        self._loop.add_reader(self._socket, self._accept)

    def refuse(self) -> None:
        """Refuse new connections from now on. Open connections stay open."""
        self._stop()
        # Bound and not listening, it refuses, and no other process gets the port meanwhile.
        self._socket = _bind(self.number)

    def hang(self) -> None:
        """Neither accept nor refuse connections from now on.

        On Linux connecting itself hangs, because the queue of waiting connections is full. Elsewhere a connection may
        open, and nothing reads from it.
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
    def has_pending(self) -> bool:
        """Whether some accepted connections are not open yet, as in the middle of a TLS handshake."""
        return bool(self._pending)

    def _stop(self) -> None:
        self._empty()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        for each in self._pending:
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
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

    async def _welcome(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._encryption)
        except OSError:
            # The client disconnected, or did not trust our certificate. It sees that error itself.
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


def _bind(number: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, number))
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound


@asynccontextmanager
async def self_signed() -> AsyncIterator[tuple[ssl.SSLContext, Path]]:
    """A TLS context with a new certificate for loopback, and the certificate's file (PEM), which a client can trust.

    Raises:
        ConfigError: there is no openssl program, or it makes no certificate.
    """
    program = shutil.which("openssl")
    if program is None:
        raise ConfigError(
            "FaultServer(tls=True) needs the openssl program, which is not on the PATH; install it, or use https_url "
            "of a server without TLS, where every handshake fails."
        )
    with TemporaryDirectory(prefix="podium-testing-") as folder:
        key, certificate = Path(folder, "key.pem"), Path(folder, "certificate.pem")
        await _run(
            *(program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", str(key), "-out", str(certificate)),
            *("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        yield context, certificate


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await process.communicate()
    if process.returncode:
        last = output.decode(errors="replace").strip().splitlines()[-1:] or ["without a message"]
        raise ConfigError(f"openssl made no certificate ({last[0]}); use version 1.1.1 or later.")
