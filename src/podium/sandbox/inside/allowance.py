"""What a program may use while it answers one order; whatever passes a limit is killed with all that came of it."""

from __future__ import annotations

from typing import NamedTuple

MIB = 2**20


class Allowance(NamedTuple):
    """Limits of one run of a program, or of one call of a function."""

    cpu_s: float = 6.0
    """Seconds of processor time, of all its processes together: a busy machine does not fail a fast program."""
    wall_s: float = 20.0
    """Seconds by the clock, for those that wait or sleep."""
    memory_bytes: int = 2048 * MIB
    """Of one process as addresses, and of all of them as memory in use."""
    file_bytes: int = 64 * MIB
    """Of one file."""
    output_bytes: int = 8 * MIB
    """Of what it writes, or of what one call returns."""
    processes: int = 32
    """And threads, at once."""
    open_files: int = 128
    """Of one process, at once."""
