"""The processes of a program, as the supervisor starts, measures and kills them.

In a pid namespace, where the supervisor is the first process, all others are the program's. Elsewhere the supervisor's
descendants are, and it inherits their orphans. A program's process is not trusted, and receives nothing secret.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

from podium.sandbox.inside.run_limits import RunLimits

TO, FROM = 3, 4
"""The child's descriptors for messages to it and from it, where its standard ones are not used."""
_FIRST_FREE_DESCRIPTOR = 100
_SHARED_MEMORY = "/dev/shm"
"""The other folder that a program may write in, if it runs in a namespace."""
_SUBREAPER, _DUMPABLE = 36, 4
"""The numbers of two operations of prctl."""


class Child:
    """The program's process, as the supervisor sees it. It ends when `task` returns or raises.

    Args:
        standard: whether messages use its standard input and output, and not `TO` and `FROM`.
        user: id of the user that it runs as, or None for the supervisor's own user.
    """

    def __init__(
        self, task: Callable[[], None], limits: RunLimits, *, standard: bool, user: int | None
    ) -> None:
        inward, self.sink = _pipe()
        self.source, outward = _pipe()
        self.received = bytearray()
        """What it has sent and the supervisor has not yet passed on."""
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                _use_pipes(inward, outward, standard)
                _set_limits(limits, user)
                _enter_own_folder()
                task()
                status = 0
            finally:
                os._exit(status)
        os.close(inward)
        os.close(outward)
        os.set_blocking(self.sink, False)
        os.set_blocking(self.source, False)

    def close_input(self) -> None:
        """Close its input; calling twice is fine."""
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def close(self) -> None:
        """Close its input and output."""
        self.close_input()
        os.close(self.source)


def supervise() -> None:
    """Make this process one that its children cannot look into, and that inherits their orphans."""
    _prctl(_SUBREAPER, 1)
    _prctl(_DUMPABLE, 0)


def _pipe() -> tuple[int, int]:
    """A pipe that another user may open by its name, as programs do with /dev/stdin."""
    ends = os.pipe()
    os.fchmod(ends[0], 0o666)
    return ends


def _use_pipes(inward: int, outward: int, standard: bool) -> None:
    nowhere = os.dup2(os.open(os.devnull, os.O_RDWR), _FIRST_FREE_DESCRIPTOR)
    inward, outward = (
        os.dup2(inward, _FIRST_FREE_DESCRIPTOR + 1),
        os.dup2(outward, _FIRST_FREE_DESCRIPTOR + 2),
    )
    for end in range(3):
        os.dup2(nowhere, end)
    os.dup2(inward, 0 if standard else TO)
    os.dup2(outward, 1 if standard else FROM)
    os.closerange(3 if standard else FROM + 1, _FIRST_FREE_DESCRIPTOR + 3)


def _enter_own_folder() -> None:
    """Enter a new folder, and remove what an earlier program left.

    Raises:
        OSError: it cannot be removed.
    """
    temporary = os.environ["TMPDIR"]
    # The parent is process 1 only in a namespace, where shared memory too is that of the programs alone.
    folders = (temporary, _SHARED_MEMORY) if os.getppid() == 1 else (temporary,)
    left = [f"{folder}/{name}" for folder in folders for name in os.listdir(folder)]
    if left := [path for path in left if not _try_remove(path)]:
        # Unlike `shutil`, these follow a program into any depth.
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            status = os.spawnvp(os.P_WAIT, command[0], [*command, *left])
        if status:
            raise OSError("the files of an earlier program cannot be removed")
    folder = f"{temporary}/{os.getpid()}"
    os.mkdir(folder)
    os.chdir(folder)


def _try_remove(folder: str) -> bool:
    """Remove a folder, if it is an empty one; the usual case, in which no process is started for it."""
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def _set_limits(limits: RunLimits, user: int | None) -> None:
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    # It may inspect itself again, as programs that open /dev/stdin do.
    _prctl(_DUMPABLE, 1)
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.open_files),
    ):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # when memory runs out, the kernel kills this process first


def _prctl(what: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")


class ResourceUsage(NamedTuple):
    """What all of the program's processes use together."""

    cpu_s: float = 0.0
    """CPU seconds since the supervisor started, including processes that have ended."""
    memory_bytes: int = 0
    processes: int = 0


class ProcessGroup:
    """All processes of the program: one child of the supervisor, and its descendants."""

    def __init__(self) -> None:
        self._in_namespace = os.getpid() == 1
        self._ended: dict[int, int] = {}

    def ended(self, pid: int) -> int | None:
        """How a process ended: its exit status, or minus the signal that killed it; or None while it runs."""
        while pid not in self._ended and self._reap(os.WNOHANG):
            pass
        return self._ended.get(pid)

    def end(self, child: int) -> int:
        """Kill all of them, wait until none is left, and return how `child`, which leads a process group, ended."""
        self._kill(child)
        # The next turn finds processes that were forked meanwhile: their killed parent is still to be waited for.
        while self._reap(0):
            self._kill(child)
        status = self._ended[child]
        self._ended.clear()
        return status

    def usage(self) -> ResourceUsage:
        """What they use now; all zero where the system has no /proc."""
        past = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu, memory, count = past.ru_utime + past.ru_stime, 0, 0
        for pid in self._members():
            try:
                # The process name, in brackets, may contain anything: fields are counted after it.
                fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            except OSError:
                continue
            cpu += sum(map(int, fields[11:15])) / _TICKS
            memory += int(fields[21]) * _PAGE
            count += int(fields[17])
        return ResourceUsage(cpu, memory, count)

    def _reap(self, options: int) -> bool:
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            return False
        if pid:
            self._ended[pid] = os.waitstatus_to_exitcode(status)
        return pid != 0

    def _kill(self, child: int) -> None:
        for victim in [-1] if self._in_namespace else [-child, *self._members()]:
            try:
                os.kill(victim, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue

    def _members(self) -> list[int]:
        if self._in_namespace:
            return [int(name) for name in os.listdir("/proc") if name.isdecimal() and name != "1"]
        return _descendants(os.getpid())


def _descendants(pid: int) -> list[int]:
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in map(int, _read(f"/proc/{pid}/task/{thread}/children").split()):
                pids += [child, *_descendants(child)]
    except OSError:
        return pids
    return pids


def _read(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read()
