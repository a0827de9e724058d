"""How torch runs: threads and memory of the process, dtype of the matrix products, named random generators.

Importing this module does not load torch, because the settings do.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

_KEEP_MAPPED, _TRIM_ABOVE = -4, -1
"""M_MMAP_MAX and M_TRIM_THRESHOLD of the C library's `mallopt`."""

Precision = Literal["auto", "fp32", "bf16"]


def compute_on_one_core() -> None:
    """Let torch use one thread and keep the memory that it frees. The user's OMP_NUM_THREADS takes precedence.

    This is only for tiny models. Their products are too small to split: an iteration took 4.9 s on two threads, and 2.8
    s on one. And without it the allocator would map memory for each large tensor and unmap it right after use. A model
    of 135 million parameters trains half as fast on one thread, and if its memory is not mapped, it grows without
    bound.
    """
    import torch  # noqa: PLC0415 - settings import this module, and load no torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    with suppress(AttributeError):  # Only glibc has `mallopt`.
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_KEEP_MAPPED, 0)
        allocator.mallopt(_TRIM_ABOVE, 2**31 - 1)


def resolve_device() -> torch.device:
    """The device on which a model trains: a GPU if there is one (CUDA_VISIBLE_DEVICES= hides it), else the CPU."""
    import torch  # noqa: PLC0415 - settings import this module, and load no torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def computes_on_several_cores() -> bool:
    """Whether torch computes on the CPU with several threads, which wait for each other in every operation."""
    import torch  # noqa: PLC0415 - see above

    return resolve_device().type == "cpu" and torch.get_num_threads() > 1


def resolve_dtype(precision: Precision, device: str = "cpu") -> torch.dtype:
    """The dtype of the matrix products. "auto" is bf16 on a GPU and on a processor that multiplies bf16 natively, else
    fp32.

    "auto" reads the processor's capabilities and measures nothing, so a run that is resumed on the same machine gets
    the same dtype.
    """
    import torch  # noqa: PLC0415 - see above

    if precision == "auto":
        native = device != "cpu" or torch.cpu.get_capabilities().get("avx512_bf16", False)
        precision = "bf16" if native else "fp32"
    return torch.bfloat16 if precision == "bf16" else torch.float32


def named_generator(name: str) -> torch.Generator:
    """A CPU generator whose random numbers depend only on `name`."""
    import torch  # noqa: PLC0415 - see above

    digest = hashlib.sha256(name.encode()).digest()
    # torch takes signed 64-bit seeds, so the top bit is left out.
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
