"""The processes of a sandbox, seen from its supervisor: it starts one with limits, meters all of them, and kills them.

As the first process of a pid namespace the supervisor owns all others there. Elsewhere it inherits its descendants'
orphans, and owns its descendants. A program's process is never trusted, so it is told nothing that it must not know.
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

from podium.sandbox.inside.allowance import Allowance

TO, FROM = 3, 4
"""Descriptors by which the child is spoken to, where its standard ones are not used for that."""
_FREE = 100
"""From this descriptor on none is open."""
_SUBREAPER, _DUMPABLE = 36, 4
"""Numbers of prctl."""


class Child:
    """A running one, seen from the supervisor."""

    def __init__(
        self, task: Callable[[], None], allowance: Allowance, *, standard: bool, user: int | None
    ) -> None:
        """Begin it.

        Args:
            task: what it does; the process ends when this returns or raises.
            standard: whether it is spoken to by its standard input and output, and not by `TO` and `FROM`.
            user: whom it runs as; None: as the supervisor does.
        """
        inward, self.sink = _pipe()
        self.source, outward = _pipe()
        self.received = bytearray()
        """What it has said and nobody has taken yet."""
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                _take_ends(inward, outward, standard)
                _confine(allowance, user)
                _settle()
                task()
                status = 0
            finally:
                os._exit(status)
        os.close(inward)
        os.close(outward)
        os.set_blocking(self.sink, False)
        os.set_blocking(self.source, False)

    def hang_up(self) -> None:
        """Tell it nothing more; twice is fine."""
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def close(self) -> None:
        """Close what leads to it and from it."""
        self.hang_up()
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


def _take_ends(inward: int, outward: int, standard: bool) -> None:
    nowhere = os.dup2(os.open(os.devnull, os.O_RDWR), _FREE)
    inward, outward = os.dup2(inward, _FREE + 1), os.dup2(outward, _FREE + 2)
    for end in range(3):
        os.dup2(nowhere, end)
    os.dup2(inward, 0 if standard else TO)
    os.dup2(outward, 1 if standard else FROM)
    os.closerange(3 if standard else FROM + 1, _FREE + 3)


def _settle() -> None:
    """Go to an empty folder of its own."""
    folder = f"{os.environ['TMPDIR']}/{os.getpid()}"
    os.mkdir(folder)
    os.chdir(folder)


def _confine(allowance: Allowance, user: int | None) -> None:
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    # It may look into itself again, as programs do that open /dev/stdin.
    _prctl(_DUMPABLE, 1)
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, allowance.memory_bytes),
        (resource.RLIMIT_FSIZE, allowance.file_bytes),
        (resource.RLIMIT_NPROC, allowance.processes),
        (resource.RLIMIT_NOFILE, allowance.open_files),
    ):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, this goes before anything else does


def _prctl(what: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """What all of them use together."""

    cpu_s: float = 0.0
    """Since the supervisor began; those that have ended are in it."""
    memory_bytes: int = 0
    processes: int = 0


class ProcessGroup:
    """Every process that came of one child of the supervisor."""

    def __init__(self) -> None:
        self._alone = os.getpid() == 1
        self._ended: dict[int, int] = {}

    def ended(self, pid: int) -> int | None:
        """How a process ended: its exit status, or minus the signal that killed it; None: it runs."""
        while pid not in self._ended and self._reap(os.WNOHANG):
            pass
        return self._ended.get(pid)

    def end(self, child: int) -> int:
        """Kill all of them, wait until none is left, and tell how the first ended.

        Args:
            child: the first, which leads a process group.
        """
        self._kill(child)
        # Who was born meanwhile is found at the next turn: its parent has been killed, and is yet to be waited for.
        while self._reap(0):
            self._kill(child)
        status = self._ended[child]
        self._ended.clear()
        return status

    def usage(self) -> Usage:
        """What they use now; nothing where the system has no /proc."""
        past = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu, memory, count = past.ru_utime + past.ru_stime, 0, 0
        for pid in self._members():
            try:
                # The name, in brackets, may hold anything: fields are counted from behind it.
                fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            except OSError:
                continue
            cpu += sum(map(int, fields[11:15])) / _TICKS
            memory += int(fields[21]) * _PAGE
            count += int(fields[17])
        return Usage(cpu, memory, count)

    def _reap(self, options: int) -> bool:
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            return False
        if pid:
            self._ended[pid] = os.waitstatus_to_exitcode(status)
        return pid != 0

    def _kill(self, child: int) -> None:
        for victim in [-1] if self._alone else [-child, *self._members()]:
            try:
                os.kill(victim, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue

    def _members(self) -> list[int]:
        if self._alone:
            return [int(name) for name in os.listdir("/proc") if name.isdecimal() and name != "1"]
        return _descendants(os.getpid())


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in map(int, _read(f"/proc/{pid}/task/{thread}/children").split()):
                found += [child, *_descendants(child)]
    except OSError:
        return found
    return found


def _read(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read()
