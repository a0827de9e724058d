"""Optimisers. As the paper sets it: AdamW without weight decay, a cosine with warm-up, clipped gradients. For the
warm start, and for GRPO where it is asked for: Muon on the matrices of the layers, and AdamW on the rest.

The learning rate is a function of the iteration alone, so that a resumed run goes on exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from podium.train.model import PolicyModel


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


Optimizers = Sequence[torch.optim.Optimizer]
"""Each over its part of the parameters."""


def adamw(model: nn.Module) -> Optimizers:
    """AdamW over all parameters, betas 0.9 and 0.999, epsilon 1e-8. The rate is set at each step."""
    return (
        torch.optim.AdamW(
            model.parameters(), lr=0.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, fused=True
        ),
    )


def muon(model: PolicyModel) -> Optimizers:
    """Muon over the matrices of the layers, and AdamW over embedding, norms and biases.

    Muon (Jordan 2024) makes each matrix's update orthogonal; scaled as AdamW's updates are (Liu et al. 2025, arXiv
    2502.16982). The rates are set at each step.
    """
    matrices = [weight for weight in model.layers.parameters() if weight.ndim == 2]
    taken = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in taken]
    return (
        torch.optim.Muon(matrices, lr=0.0, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
    )


OPTIMIZERS: Mapping[str, Callable[[PolicyModel], Optimizers]] = {"adamw": adamw, "muon": muon}
"""By the name that settings have for them."""


def step(
    optimizers: Optimizers,
    model: nn.Module,
    *,
    rates: Sequence[float],
    max_norm: float = 1.0,
) -> float:
    """Clip the gradients to `max_norm` together, step at these rates, clear them. Returns the norm before clipping."""
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for optimizer, rate in zip(optimizers, rates, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return float(norm)
