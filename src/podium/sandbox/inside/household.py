"""The processes of a sandbox, apart from the one that supervises: what they use, and their end.

As the first process of a pid namespace the supervisor owns all others there. Elsewhere it inherits its descendants'
orphans, and owns its descendants.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import NamedTuple

_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """What all of them use together."""

    cpu_s: float = 0.0
    """Since the supervisor began; those that have ended are in it."""
    memory_bytes: int = 0
    processes: int = 0


class Household:
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
