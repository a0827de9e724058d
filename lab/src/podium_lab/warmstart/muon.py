"""The optimiser of supervised training: Muon on the layers' matrices, and AdamW on the other parameters.

AdamW mostly follows the largest directions of the gradient. Muon gives all directions the same length, so the policy
also learns what only a few examples teach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from podium.train.shared_prefix.policy_model import Layer, PolicyModel

Optimizers = Sequence[torch.optim.Optimizer]
"""One or more optimisers, each for its part of the parameters."""


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


def step(optimizers: Optimizers, model: nn.Module, *, rates: Sequence[float], max_norm: float = 1.0) -> float:
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
