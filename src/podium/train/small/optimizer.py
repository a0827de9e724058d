"""The optimisers and the learning-rate schedule.

GRPO uses, as in the paper, AdamW without weight decay, a cosine schedule with warm-up, and clipped gradients. The warm
start, and GRPO with `optimizer = "muon"`, use Muon on the layers' matrices and AdamW on the other parameters.

The learning rate depends only on the iteration, so a resumed run continues exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from podium.train.small.model import Layer, PolicyModel


def learning_rate(iteration: int, *, peak: float, iterations: int, warmup: float) -> float:
    """The rate of an iteration counted from 0. It rises linearly to `peak`, then falls along half a cosine to 0.

    Args:
        warmup: share of the iterations that the rise takes.
    """
    rise = math.ceil(warmup * iterations)
    if iteration < rise:
        return peak * (iteration + 1) / (rise + 1)
    progress = (iteration - rise) / max(iterations - rise, 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


Optimizers = Sequence[torch.optim.Optimizer]
"""One or more optimisers, each for its part of the parameters."""


def adamw(model: nn.Module) -> Optimizers:
    """AdamW over all parameters, betas 0.9 and 0.999, epsilon 1e-8. The rate is set at each step."""
    return (
        torch.optim.AdamW(
            model.parameters(), lr=0.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, fused=True
        ),
    )


class _SplitMuon(torch.optim.Muon):
    """Muon that treats the parts of a fused matrix separately: queries, keys and values; gate and up.

    Muon makes each update orthogonal. For a fused matrix that would couple parts that are independent. The momentum
    stays fused, because splitting it makes no difference.

    Args:
        rows: for each fused weight, the number of rows of each part.
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
    """Muon over the layers' matrices, and AdamW over embedding, norms and biases.

    Muon (Jordan 2024) makes each matrix's update orthogonal. It is scaled to the size of AdamW's updates (Liu et al.
    2025, arXiv 2502.16982). The rates are set at each step.
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
"""By their names in settings."""


def step(
    optimizers: Optimizers,
    model: nn.Module,
    *,
    rates: Sequence[float],
    max_norm: float = 1.0,
) -> float:
    """Clip the norm of all gradients to `max_norm`, take a step at these rates, and clear the gradients.

    Returns:
        The norm before clipping.
    """
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for optimizer, rate in zip(optimizers, rates, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return float(norm)
