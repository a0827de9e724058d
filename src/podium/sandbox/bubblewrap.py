"""The strong walls: bubblewrap (github.com/containers/bubblewrap), an unprivileged tool that makes namespaces.

Inside are a read-only system, the interpreter's own folders, and two small folders in memory to write to; no network,
no other processes, no home, no data. Where root starts it, programs are another user, so that limits hold for them too.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from podium.sandbox import interpreter, seccomp
from podium.sandbox.enclosure import Enclosure
from podium.sandbox.inside.allowance import MIB
from podium.sandbox.process import Process
from podium.sandbox.users import Strangers

_DISK_BYTES = 64 * MIB
"""Of each of the two folders to write to, which are memory."""
_INSIDE, _TEMPORARY = Path("/inside"), Path("/tmp")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/mime.types")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CAPABILITIES = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL")
"""What the first process needs to have programs run as another user, and to kill them."""
_STREAMS = (("", "fd"), ("/0", "stdin"), ("/1", "stdout"), ("/2", "stderr"))


class Bubblewrap(Enclosure):
    """Namespaces, made by bubblewrap."""

    name = "bubblewrap"
    weak = False

    def __init__(self, tool: str) -> None:
        """Prepare; `open` makes them.

        Args:
            tool: path of `bwrap`, 0.8 or later.
        """
        self._walls = [tool, *_namespaces(), *_files(), "--chdir", str(_TEMPORARY)]
        self._filter = seccomp.program()
        self._strangers: Strangers | None = None
        self._others = 0

    async def open(self) -> None:
        if self._filter is None:
            warnings.warn(
                f"Graded programs run without a filter of system calls: it is not known for {platform.machine()}.",
                RuntimeWarning,
                stacklevel=2,
            )
        if os.getuid() == 0:
            self._strangers = await Strangers.open()
        elif not interpreter.counts_apart():
            self._others = interpreter.processes_of_user()

    def close(self) -> None:
        if self._strangers is not None:
            self._strangers.close()
            self._strangers = None

    def start(self, closing: ExitStack) -> Process:
        options, passed, user = ["--unshare-user"], [], None
        if self._strangers is not None:
            user, passed = self._strangers.next(), [self._strangers.descriptor]
            options = ["--userns", str(self._strangers.descriptor), *_CAPABILITIES]
        with ExitStack() as ours:
            if self._filter is not None:
                held = ours.enter_context(_pipe_of(self._filter))
                options, passed = [*options, "--seccomp", str(held)], [*passed, held]
            command = [*self._walls, *options, "--", *interpreter.command(self._others, user)]
            return Process(command, interpreter.environment(_INSIDE, _TEMPORARY), passed)


def _namespaces() -> list[str]:
    options = [f"--unshare-{kind}" for kind in ("pid", "ipc", "net", "uts", "cgroup-try")]
    return [
        *options,
        "--hostname",
        "sandbox",
        "--die-with-parent",
        "--as-pid-1",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]


def _files() -> list[str]:
    options: list[str] = []
    for path in filter(os.path.lexists, _SYSTEM):
        options += (
            ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
        )
    for path in _CONFIGURATION:
        options += ["--ro-bind-try", path, path]
    options += ["--proc", "/proc", "--tmpfs", "/dev"]
    for device in _DEVICES:
        options += ["--dev-bind", device, device]
    for end, name in _STREAMS:
        options += ["--symlink", f"/proc/self/fd{end}", f"/dev/{name}"]
    for writable in ("/dev/shm", str(_TEMPORARY)):
        options += ["--perms", "1777", "--size", str(_DISK_BYTES), "--tmpfs", writable]
    # Last, for what stands in /tmp itself would be hidden by the new one.
    for folder in interpreter.folders():
        options += _bound(folder, folder)
    options += _bound(interpreter.ROOT / interpreter.PACKAGE, _INSIDE / interpreter.PACKAGE)
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]


def _bound(outside: Path, inside: Path) -> list[str]:
    """A folder, read-only, at a place to which every user of the sandbox finds the way."""
    options: list[str] = []
    for parent in list(reversed(inside.parents))[1:]:
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, "--ro-bind", str(outside), str(inside)]


@contextmanager
def _pipe_of(data: bytes) -> Iterator[int]:
    """A descriptor from which short data is read, once."""
    source, sink = os.pipe()
    try:
        os.write(sink, data)
        os.close(sink)
        yield source
    finally:
        os.close(source)
