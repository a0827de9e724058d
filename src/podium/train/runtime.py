"""How torch runs here: variables of the process, number format of the matrix products, named random generators.

Importing this module loads no torch: the command line calls `missing_variables` before torch starts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

_WANTED = {
    # Threads that spin while they wait made training up to 20 times slower beside another busy process.
    "OMP_WAIT_POLICY": "PASSIVE",
    # A tiny policy's products are too small to share: two threads took 4.9 s an iteration, one 2.8 s.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Otherwise the kernel maps large tensors anew at each use, and takes them back after it.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
}

Precision = Literal["auto", "fp32", "bf16"]


def missing_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that torch on a CPU runs well under and that the user has not set.

    They take effect only if they are set before torch is loaded, so the caller sets them and starts the process again.
    """
    return {name: value for name, value in _WANTED.items() if name not in environ}


def resolve_dtype(precision: Precision) -> torch.dtype:
    """The dtype of the matrix products. "auto" is bf16 where the processor multiplies it natively, else fp32.

    It asks the processor and times nothing, so that a resumed run resolves to the same dtype.
    """
    import torch  # noqa: PLC0415 - the command line imports this module before torch may start

    if precision == "auto":
        precision = "bf16" if torch.cpu.get_capabilities().get("avx512_bf16", False) else "fp32"
    return torch.bfloat16 if precision == "bf16" else torch.float32


def generator(name: str) -> torch.Generator:
    """A CPU generator whose stream depends on `name` alone."""
    import torch  # noqa: PLC0415 - see above

    digest = hashlib.sha256(name.encode()).digest()
    # torch takes 64-bit seeds; the top bit is left out because it would be read as a sign.
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
