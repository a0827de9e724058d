"""The interpreter of a sandbox: its command line, its environment, and its process, which talks over a socket pair."""

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
from glob import iglob
from pathlib import Path

from podium.errors import ConfigError

PACKAGE = Path("podium", "sandbox", "inside")
"""Path of the code that runs inside, below the folder that holds the package."""
ROOT = Path(__file__).resolve().parents[2]
"""That folder, as this process sees it."""
_CODE = "from podium.sandbox.inside.supervisor import main; main()"


def command(user: int | None = None) -> list[str]:
    """The interpreter's command line. `user` is the id of the user that programs run as, or None for its own user."""
    # -S: importing `site` takes a third of the start, and all it gives is these folders.
    return [sys.executable, "-S", "-s", "-P", "-c", _CODE, str(user or ""), *site.getsitepackages()]


def environment(root: Path, temporary: Path) -> Mapping[str, str]:
    """Its whole environment: it inherits no variable of this process. `root` is the folder that holds `PACKAGE`, as the
    interpreter sees it, and `temporary` the one writable folder."""
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
    """The folders that it reads, as named and with links resolved: its installation and its virtual environment, unless
    they lie below /usr.

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
    """Processes and threads of this user. The kernel counts a sandbox's own together with them, but since Linux 5.14
    those of a user namespace apart."""
    me = os.getuid()
    count = 0
    for process in iglob("/proc/[0-9]*"):
        try:
            if os.stat(process).st_uid == me:
                count += len(os.listdir(f"{process}/task"))
        except OSError:
            continue
    return count


def counts_by_namespace() -> bool:
    """Whether the kernel counts the processes of a user namespace apart."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)


_END_TIMEOUT_S = 5.0
"""Seconds for a process to end by itself, before it is killed."""
_POLL_S = 0.001
_READ_BYTES = 2**18


class InterpreterProcess:
    """A running process, whose standard input and output are one end of a socket pair. It ends by itself when the other
    end, which Podium holds, is closed, also by Podium's own death. Only if it does not, it is killed: a process that is
    killed while it makes namespaces leaves them behind half-made."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        inherited: Collection[int] = (),
        folder: str | None = None,
    ) -> None:
        """Start it in a session of its own, which the terminal's signals do not reach. It inherits the descriptors
        `inherited` besides its standard ones. `folder` is its own: it removes it at its end, or else `end` does.

        Raises:
            OSError: it cannot be started.
        """
        self._folder = folder
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
            _remove(folder)
            raise
        finally:
            theirs.close()
            os.close(error_sink)
        self._ours.setblocking(False)
        os.set_blocking(self._errors, False)
        # Ends the process where the event loop ends before `end` was called.
        self._finalizer = weakref.finalize(self, _end_now, os.getpid(), self._popen, self._ours, self._errors)

    @property
    def pid(self) -> int:
        """The id of the interpreter's process."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether the interpreter's process still runs."""
        return self._popen.poll() is None

    async def write(self, data: bytes) -> None:
        """Write all of `data` to it.

        Raises:
            OSError: it has ended.
        """
        await asyncio.get_running_loop().sock_sendall(self._ours, data)

    async def read(self, size: int) -> bytes:
        """Read exactly `size` bytes from it.

        Raises:
            OSError: it ended before it wrote that many.
        """
        parts = bytearray()
        while len(parts) < size:
            part = await asyncio.get_running_loop().sock_recv(self._ours, min(size - len(parts), _READ_BYTES))
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
        """Close the connection to it, and wait until it has ended and its folder is gone."""
        _disconnect(self._ours)
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                while self.alive:  # noqa: ASYNC110 - there is no event to wait for, and it takes milliseconds
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            self._popen.kill()
        finally:
            self._finalizer()
            if self._folder is not None:
                # In a thread, since what a program leaves on a disk may take seconds to remove.
                await asyncio.to_thread(_remove, self._folder)


def _remove(folder: str | None) -> None:
    if folder is not None and os.path.exists(folder):
        subprocess.run(["rm", "-rf", folder], check=False, stderr=subprocess.DEVNULL)


def _end_now(owner: int, popen: subprocess.Popen[bytes], ours: socket.socket, errors: int) -> None:
    if os.getpid() != owner:
        return  # a fork of this process, which ends earlier
    _disconnect(ours)
    os.close(errors)
    try:
        popen.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()


def _disconnect(ours: socket.socket) -> None:
    # A fork of this process may have the socket open too; closing it here alone would not end the connection.
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)
    ours.close()
