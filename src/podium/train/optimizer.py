"""The optimiser as the paper sets it: AdamW without weight decay, a cosine with warm-up, clipped gradients.

The learning rate is a function of the iteration alone, so that a resumed run goes on exactly.
"""

from __future__ import annotations

import math

import torch
from torch import nn


def learning_rate(iteration: int, *, peak: float, iterations: int, warmup: float) -> float:
    """The rate of an iteration counted from 0: linear up to `peak`, then half a cosine down to 0.

    Args:
        warmup: share of the iterations that the rise takes.
    """
    rise = math.ceil(warmup * iterations)
    if iteration < rise:
        return peak * (iteration + 1) / (rise + 1)
    progress = (iteration - rise) / max(iterations - rise, 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


def adamw(model: nn.Module, *, weight_decay: float = 0.0) -> torch.optim.AdamW:
    """AdamW over all parameters, betas 0.9 and 0.999, epsilon 1e-8. The rate is set at each step."""
    return torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=weight_decay, fused=True
    )


def step(optimizer: torch.optim.Optimizer, model: nn.Module, *, rate: float, max_norm: float = 1.0) -> float:
    """Clip the gradients to `max_norm` together, step, clear them. Returns the norm before clipping."""
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(norm)
