"""The interpreter that waits in a sandbox: its command, its environment, and its process with a pair of sockets."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import site
import socket
import subprocess
import sys
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from podium.errors import ConfigError

PACKAGE = Path("podium", "sandbox", "inside")
"""Where the code that runs inside lies below a folder of packages."""
ROOT = Path(__file__).resolve().parents[2]
"""That folder, outside."""
_CODE = "from podium.sandbox.inside.supervisor import main; main()"


def command(others: int, user: int | None = None) -> list[str]:
    """Program and arguments.

    Args:
        others: processes that count against the limit of processes, as `processes_of_user` has it.
        user: whom programs run as; None: as the interpreter.
    """
    # -S: the `site` module takes a third of an interpreter's start, and gives no more than these folders.
    return [
        sys.executable,
        "-S",
        "-s",
        "-P",
        "-c",
        _CODE,
        str(others),
        str(user or ""),
        *site.getsitepackages(),
    ]


def environment(root: Path, temporary: Path) -> Mapping[str, str]:
    """All of its environment: nothing is taken from ours.

    Args:
        root: the folder that holds `PACKAGE`, as the interpreter sees it.
        temporary: the one folder to write to.
    """
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(temporary),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "Agg",
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # the same program gets the same verdict
        **one_thread,
    }


def folders() -> list[Path]:
    """What it reads: its own installation and its virtual environment, by all names that they go by.

    Raises:
        ConfigError: the user's home lies in one of them.
    """
    prefixes = [Path(prefix) for prefix in (sys.base_prefix, sys.prefix)]
    home = Path(os.path.expanduser("~"))
    for prefix in prefixes:
        if home.is_relative_to(prefix):
            raise ConfigError(
                f"Your home lies in {prefix}, where Python is; run Podium from a virtual environment."
            )
    named = dict.fromkeys([*prefixes, *(prefix.resolve() for prefix in prefixes)])
    return [prefix for prefix in named if not prefix.is_relative_to("/usr")]


def processes_of_user() -> int:
    """Processes and threads of this user, which the kernel counts together with a sandbox's own.

    Since Linux 5.14 those of a user namespace are counted apart.
    """
    me = os.getuid()
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == me:
                count += len(os.listdir(process / "task"))
        except OSError:
            continue
    return count


def counts_apart() -> bool:
    """Whether the kernel counts the processes of a user namespace apart."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)


_PATIENCE_S = 5.0
"""Time for a process to end by itself."""
_GLANCE_S = 0.001
"""Between two checks whether it has ended."""
_AT_ONCE = 2**18


class Process:
    """A running process; we speak with it over a pair of sockets, its standard input and output.

    It ends by itself when our side of that pair is closed, as it is when this process dies. It is killed only if it
    does not: a process killed while it makes namespaces would leave behind what it has begun.
    """

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
        self._errors, error_sink = os.pipe()
        try:
            self._popen: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=error_sink,
                env=environment,
                pass_fds=inherited,
                start_new_session=True,
            )
        except BaseException:
            self._ours.close()
            os.close(self._errors)
            raise
        finally:
            theirs.close()
            os.close(error_sink)
        self._ours.setblocking(False)
        os.set_blocking(self._errors, False)
        # For an event loop that ends before `end` was called.
        self._finalizer = weakref.finalize(self, _end_now, os.getpid(), self._popen, self._ours, self._errors)

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

    def last_error(self) -> str:
        """The last line that it wrote to its standard error."""
        try:
            words = os.read(self._errors, 2**16)
        except BlockingIOError:
            words = b""
        return words.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")

    async def end(self) -> None:
        """Close the connection to it, and wait until it has ended."""
        _hang_up(self._ours)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self.alive:  # noqa: ASYNC110 - there is no event to wait for, and it takes milliseconds
                    await asyncio.sleep(_GLANCE_S)
        except TimeoutError:
            self._popen.kill()
        finally:
            self._finalizer()


def _end_now(owner: int, popen: subprocess.Popen[bytes], ours: socket.socket, errors: int) -> None:
    if os.getpid() != owner:
        return  # a fork of ours, which leaves before us
    _hang_up(ours)
    os.close(errors)
    try:
        popen.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()


def _hang_up(ours: socket.socket) -> None:
    # A fork of ours may hold the socket, too: closing it here alone would not end the connection.
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)
    ours.close()
