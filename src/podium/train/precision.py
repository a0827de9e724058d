"""Which number format the matrix products run in."""

from __future__ import annotations

from typing import Literal

import torch

Precision = Literal["auto", "fp32", "bf16"]


def resolve(precision: Precision) -> torch.dtype:
    """The dtype of a setting. "auto" is bf16 where the processor multiplies it natively, else fp32.

    It asks the processor and does not time anything: a run must resolve alike when it is resumed.
    """
    if precision == "auto":
        precision = "bf16" if torch.cpu.get_capabilities().get("avx512_bf16", False) else "fp32"
    return torch.bfloat16 if precision == "bf16" else torch.float32
