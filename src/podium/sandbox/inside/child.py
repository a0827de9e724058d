"""A process that runs what nobody has read: begun by the supervisor, limited before its first foreign line.

Two pipes lead to it and from it. It is never trusted again, and so it is told nothing that it must not know.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Callable

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
        self, deed: Callable[[], None], allowance: Allowance, *, standard: bool, user: int | None
    ) -> None:
        """Begin it.

        Args:
            deed: what it does; the process ends where this returns or raises.
            standard: whether it is spoken to by its standard input and output, and not by `TO` and `FROM`.
            user: whom it runs as; None: as the supervisor does.
        """
        inward, self.sink = _pipe()
        self.source, outward = _pipe()
        self.heard = bytearray()
        """What it has said and nobody has taken yet."""
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                _take_ends(inward, outward, standard)
                _confine(allowance, user)
                _settle()
                deed()
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
