"""Whose the programs are that root has run: nobody's, one user for each sandbox, in a user namespace that they share.

The kernel counts no processes of root, and lets root write what is root's. So root's programs must be somebody else,
whom only a map written from outside can make known in a namespace.
"""

from __future__ import annotations

import os
import sys
from itertools import cycle
from pathlib import Path

from podium.sandbox.process import Process

_STRANGERS = range(65024, 65534)
"""Numbers that belong to nobody for long: by systemd's list to services while they run, by Debian's to nobody."""
_MAP = f"0 0 1\n{_STRANGERS.start} {_STRANGERS.start} {len(_STRANGERS)}\n"
"""Lines of: the first number inside, the first outside, how many."""
_CODE = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000), flush=True); input()"
"""Enters a new user namespace (CLONE_NEWUSER), and stays until its input ends."""


class Strangers:
    """A user namespace, held open, and the users that are known in it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._numbers = cycle(_STRANGERS)

    @classmethod
    async def open(cls) -> Strangers:
        """Make the namespace.

        Raises:
            OSError: this system does not let us.
        """
        holder = Process([sys.executable, "-S", "-I", "-c", _CODE], {})
        try:
            if await holder.read(2) != b"0\n":
                raise OSError("no user namespace can be made")
            return cls(_mapped(holder.pid))
        finally:
            await holder.end()

    def next(self) -> int:
        """A user for one sandbox."""
        return next(self._numbers)

    def close(self) -> None:
        """Let the namespace go; sandboxes that are in it keep it."""
        os.close(self.descriptor)


def _mapped(pid: int) -> int:
    """A descriptor of the namespace of a process, when users have been made known in it."""
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{kind}").write_text(_MAP)
    return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
