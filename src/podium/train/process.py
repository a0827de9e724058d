"""Settings of the process that torch on a CPU runs well under. They must be in place before it starts.

Pure; loads no torch. Who starts a training run, the command line, runs itself again if any is missing.
"""

from __future__ import annotations

from collections.abc import Mapping

_WANTED = {
    # Threads that spin while they wait made training up to 20 times slower beside another busy process.
    "OMP_WAIT_POLICY": "PASSIVE",
    # A tiny policy's products are too small to share: two threads took 4.9 s an iteration, one 2.8 s.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Large tensors are otherwise mapped from the kernel and given back at each use.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
}


def missing_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables to set, and start the process again: those that the user has not set in any way."""
    return {name: value for name, value in _WANTED.items() if name not in environ}
