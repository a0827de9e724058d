"""A process behind walls, and the one way to speak with it: a pair of sockets, its standard input and output.

It is not killed while it does as it is told: it ends when our side of that pair is closed, as it is when we are no
more. Whoever is killed while it makes namespaces would leave behind what it has begun.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

_PATIENCE_S = 5.0
"""For a process to end by itself."""
_GLANCE_S = 0.001
"""Between two looks at whether it has; it is about to."""
_AT_ONCE = 2**18


class Process:
    """A running one."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], inherited: Collection[int] = ()
    ) -> None:
        """Start it, out of reach of our terminal's signals.

        Args:
            inherited: descriptors that it gets, besides its standard ones.

        Raises:
            OSError: it cannot be started.
        """
        self._ours, theirs = socket.socketpair()
        self._complaints, complains = os.pipe()
        try:
            self._popen: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=complains,
                env=environment,
                pass_fds=inherited,
                start_new_session=True,
            )
        except BaseException:
            self._ours.close()
            os.close(self._complaints)
            raise
        finally:
            theirs.close()
            os.close(complains)
        self._ours.setblocking(False)
        os.set_blocking(self._complaints, False)
        # Where a loop ends before whoever used it has: then nobody else is left to do it.
        self._forgotten = weakref.finalize(
            self, _end_now, os.getpid(), self._popen, self._ours, self._complaints
        )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._popen.poll() is None

    async def write(self, data: bytes) -> None:
        """Write all of `data` to it.

        Raises:
            OSError: it has ended.
        """
        await asyncio.get_running_loop().sock_sendall(self._ours, data)

    async def read(self, size: int) -> bytes:
        """Read so many bytes from it.

        Raises:
            OSError: it has ended before.
        """
        parts = bytearray()
        while len(parts) < size:
            part = await asyncio.get_running_loop().sock_recv(self._ours, min(size - len(parts), _AT_ONCE))
            if not part:
                raise OSError("it has ended")
            parts += part
        return bytes(parts)

    def complaint(self) -> str:
        """The last line that it wrote to its standard error."""
        try:
            words = os.read(self._complaints, 2**16)
        except BlockingIOError:
            words = b""
        return words.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")

    async def end(self) -> None:
        """Close the way to it, and wait until it has ended."""
        _hang_up(self._ours)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self.alive:  # noqa: ASYNC110 - nobody tells us, and it is a matter of milliseconds
                    await asyncio.sleep(_GLANCE_S)
        except TimeoutError:
            self._popen.kill()
        finally:
            self._forgotten()


def _end_now(owner: int, popen: subprocess.Popen[bytes], ours: socket.socket, complaints: int) -> None:
    if os.getpid() != owner:
        return  # a fork of ours, which leaves before us
    _hang_up(ours)
    os.close(complaints)
    try:
        popen.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()


def _hang_up(ours: socket.socket) -> None:
    # A fork of ours may hold the socket, too: closing it here would not be heard.
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)
    ours.close()
