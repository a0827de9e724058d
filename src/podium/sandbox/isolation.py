"""How a sandbox is isolated: by the namespaces of bubblewrap, or else as a plain process with limits.

bubblewrap (github.com/containers/bubblewrap) is an unprivileged tool that makes namespaces. Inside are a read-only
system, the interpreter's own folders, and two small folders in memory to write to; no network, no other processes, no
home, no data. A plain process stops only accidents, such as endless loops; it does not stop a program that means harm.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

from podium.sandbox import interpreter, seccomp
from podium.sandbox.inside.run_limits import MIB
from podium.sandbox.interpreter import InterpreterProcess


class Isolation(ABC):
    """One way to isolate programs."""

    name: str
    weak: bool
    """Whether a program could escape: read and write this user's files, use the network, kill Podium."""

    async def open(self) -> None:  # noqa: B027 - a plain process shares nothing
        """Prepare what all sandboxes share.

        Raises:
            OSError: this system does not allow it.
        """

    def close(self) -> None:  # noqa: B027
        """Release what `open` prepared."""

    @abstractmethod
    def start(self) -> InterpreterProcess:
        """Start an interpreter that waits for orders on its standard input.

        Raises:
            OSError: it cannot be started.
        """

    @abstractmethod
    def other_processes(self) -> int:
        """Processes outside a sandbox that the kernel counts with its own against the limit of processes."""


class PlainProcess(Isolation):
    """A plain process with limits, killed with its descendants; for machines without namespaces. It stops endless loops
    and output, and memory, processes and files that grow without end. A malicious program can read and write this
    user's files, use the network, and kill Podium."""

    name = "no isolation"
    weak = True

    def start(self) -> InterpreterProcess:
        folder = tempfile.mkdtemp(prefix="podium-")
        environment = interpreter.environment(interpreter.ROOT, Path(folder))
        return InterpreterProcess(interpreter.command(), environment, folder=folder)

    def other_processes(self) -> int:
        return interpreter.processes_of_user()


_DISK_BYTES = 64 * MIB
"""Size of each of the two writable folders, which lie in memory."""
_INSIDE, _TEMPORARY = Path("/inside"), Path("/tmp")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/mime.types")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_NAMESPACES = (
    *(f"--unshare-{kind}" for kind in ("pid", "ipc", "net", "uts", "cgroup-try")),
    *("--hostname", "sandbox", "--die-with-parent", "--as-pid-1", "--new-session", "--cap-drop", "ALL"),
)
_CAPABILITIES = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL")
"""The supervisor needs these to run programs as another user, and to kill them."""
_STREAMS = (("", "fd"), ("/0", "stdin"), ("/1", "stdout"), ("/2", "stderr"))


class Bubblewrap(Isolation):
    """Namespaces, made by bubblewrap. `tool` is the path of `bwrap`, 0.8 or later."""

    name = "bubblewrap"
    weak = False

    def __init__(self, tool: str) -> None:
        self._command = [tool, *_NAMESPACES, *_file_options(), "--chdir", str(_TEMPORARY)]
        self._filter = seccomp.build_filter()
        self._users: int | None = None
        """The namespace of `_open_users`. None unless root runs Podium."""
        self._user_ids = cycle(_USER_IDS)

    async def open(self) -> None:
        if self._filter is None:
            warnings.warn(
                f"Graded programs run without a filter of system calls: Podium has none for {platform.machine()}.",
                RuntimeWarning,
                stacklevel=2,
            )
        if os.getuid() == 0:
            self._users = await _open_users()

    def close(self) -> None:
        if self._users is not None:
            os.close(self._users)
            self._users = None

    def start(self) -> InterpreterProcess:
        options, passed, user = ["--unshare-user"], [], None
        if self._users is not None:
            user, passed = next(self._user_ids), [self._users]
            options = ["--userns", str(self._users), *_CAPABILITIES]
        with ExitStack() as ours:
            if self._filter is not None:
                filter_pipe = ours.enter_context(_open_pipe(self._filter))
                options, passed = [*options, "--seccomp", str(filter_pipe)], [*passed, filter_pipe]
            command = [*self._command, *options, "--", *interpreter.command(user)]
            return InterpreterProcess(command, interpreter.environment(_INSIDE, _TEMPORARY), passed)

    def other_processes(self) -> int:
        if self._users is not None or interpreter.counts_by_namespace():
            return 0
        return interpreter.processes_of_user()


def _file_options() -> list[str]:
    options: list[str] = []
    for path in filter(os.path.lexists, _SYSTEM):
        options += (
            ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
        )
    options += ["--perms", "0755", "--dir", "/etc"]  # every user of the sandbox may enter it
    for path in _CONFIGURATION:
        options += ["--ro-bind-try", path, path]
    options += ["--proc", "/proc", "--tmpfs", "/dev"]
    for device in _DEVICES:
        options += ["--dev-bind", device, device]
    for end, name in _STREAMS:
        options += ["--symlink", f"/proc/self/fd{end}", f"/dev/{name}"]
    for writable in ("/dev/shm", str(_TEMPORARY)):
        options += ["--perms", "1777", "--size", str(_DISK_BYTES), "--tmpfs", writable]
    # Last: the new /tmp would hide folders that lie in the old one.
    for folder in interpreter.folders():
        options += _bind_options(folder, folder)
    options += _bind_options(interpreter.ROOT / interpreter.PACKAGE, _INSIDE / interpreter.PACKAGE)
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]


def _bind_options(outside: Path, inside: Path) -> list[str]:
    """Options that mount a folder read-only, with parents that every user of the sandbox may enter."""
    options: list[str] = []
    for parent in list(reversed(inside.parents))[1:]:
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, "--ro-bind", str(outside), str(inside)]


@contextmanager
def _open_pipe(data: bytes) -> Iterator[int]:
    """A descriptor from which short data can be read once."""
    source, sink = os.pipe()
    try:
        os.write(sink, data)
        os.close(sink)
        yield source
    finally:
        os.close(source)


_USER_IDS = range(65024, 65534)
"""User ids that belong to no account: systemd gives them to services while they run, Debian gives them to none."""
_MAP = f"0 0 1\n{_USER_IDS.start} {_USER_IDS.start} {len(_USER_IDS)}\n"
"""Each line: the first id inside the namespace, the first id outside, how many ids."""
_CODE = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000), flush=True); input()"
"""Enters a new user namespace (CLONE_NEWUSER), and waits until its input ends."""


async def _open_users() -> int:
    """A descriptor of a user namespace for the users that programs run as when root runs Podium, one for each sandbox.

    The kernel does not limit the processes of root, and lets root write root's files. A namespace knows these users
    only after its user map was written from outside. Sandboxes that run in it keep it alive.

    Raises:
        OSError: this system does not allow it.
    """
    holder = InterpreterProcess([sys.executable, "-S", "-I", "-c", _CODE], {})
    try:
        if await holder.read(2) != b"0\n":
            raise OSError("no user namespace can be made")
        return _open_namespace(holder.pid)
    finally:
        await holder.end()


def _open_namespace(pid: int) -> int:
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{kind}").write_text(_MAP)
    return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
