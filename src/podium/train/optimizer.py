"""Optimisers and the learning rate.

As in the paper: AdamW without weight decay, a cosine with warm-up, clipped gradients. For the warm start, and for GRPO
where the settings say so: Muon on the matrices of the layers, and AdamW on the rest.

The learning rate is a function of the iteration alone, so that a resumed run goes on exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from podium.train.model import Layer, PolicyModel


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


class _SplitMuon(torch.optim.Muon):
    """Muon that takes each matrix within a fused one for itself: queries, keys and values, gate and up.

    To make a fused matrix orthogonal would tie matrices together that have nothing to do with one another. Its momentum
    is kept in one piece, since that is the same.

    Args:
        rows: of the fused weights, the rows of each matrix within.
    """

    def __init__(self, weights: list[nn.Parameter], rows: Mapping[Tensor, Sequence[int]]) -> None:
        super().__init__(weights, lr=0.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
        self._rows = rows

    def _init_group(
        self,
        group: MutableMapping[str, Any],
        params_with_grad: list[Tensor],
        grads: list[Tensor],
        muon_momentum_bufs: list[Tensor],
    ) -> bool:
        fused: tuple[list[Tensor], list[Tensor], list[Tensor]] = [], [], []
        has_complex: bool = super()._init_group(group, *fused)
        for weight, grad, momentum in zip(*fused, strict=True):
            rows = list(self._rows.get(weight, [len(weight)]))
            params_with_grad.extend(torch.split(weight.detach(), rows))
            grads.extend(torch.split(grad, rows))
            muon_momentum_bufs.extend(torch.split(momentum, rows))
        return has_complex


def muon(model: PolicyModel) -> Optimizers:
    """Muon over the matrices of the layers, and AdamW over embedding, norms and biases.

    Muon (Jordan 2024) makes each matrix's update orthogonal; scaled as AdamW's updates are (Liu et al. 2025, arXiv
    2502.16982). The rates are set at each step.
    """
    matrices = [weight for weight in model.layers.parameters() if weight.ndim == 2]
    muons = set(matrices)
    others = [weight for weight in model.parameters() if weight not in muons]
    shape = model.shape
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    rows: dict[Tensor, Sequence[int]] = {}
    for layer in cast("Iterable[Layer]", model.layers):
        rows[layer.qkv.weight] = (queries, keys, keys)
        rows[layer.gate_up.weight] = (shape.inner, shape.inner)
    return (
        _SplitMuon(matrices, rows),
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
