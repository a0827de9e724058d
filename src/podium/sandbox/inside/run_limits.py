"""The resource limits of a program. The supervisor kills a program that passes one, with all its processes."""

from __future__ import annotations

import math
from typing import NamedTuple

MIB = 2**20
WALL_TIME_FACTOR = 3
"""Seconds of wall time for each second of CPU time: programs may wait, and machines may be busy."""


class RunLimits(NamedTuple):
    """Limits of one run of a program, or of one call of a function."""

    cpu_s: float = 6.0
    """Seconds of CPU time of all its processes together, so that a busy machine does not fail a fast program."""
    total_cpu_s: float = math.inf
    """The same for all calls of one program together."""
    wall_s: float = 20.0
    """Seconds of wall time, for programs that wait or sleep."""
    memory_bytes: int = 2048 * MIB
    """Address space of one process; also memory in use by all of them together."""
    file_bytes: int = 64 * MIB
    """The most bytes of one file."""
    output_bytes: int = 8 * MIB
    """What the program prints, or what one call returns."""
    processes: int = 32
    """Processes and threads at once."""
    open_files: int = 128
    """Files that one process has open at once."""

    @classmethod
    def of(cls, seconds: float, memory_mb: int) -> RunLimits:
        """Limits of CPU time, with the wall time that goes with it, and of memory."""
        return cls(cpu_s=seconds, wall_s=WALL_TIME_FACTOR * seconds, memory_bytes=memory_mb * MIB)
