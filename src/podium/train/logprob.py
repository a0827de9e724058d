"""Log-probabilities of given tokens, from hidden states and the output matrix in one piece.

The logits of a micro-batch are its largest tensor by far. They are made once, read and written in slices that
stay in the processor's cache, and in the backward pass turned into their own gradient in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_SLICE = 256
"""Tokens of a slice: 2 MB of fp32 for a vocabulary of 2,000."""


class _TokenLogprobs(torch.autograd.Function):
    """See `token_logprobs`. Its backward pass overwrites what it kept, so it runs once."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, scale: float) -> Tensor:
        logits_NV = hidden_ND @ weight_VD.T
        total_N1 = torch.empty(len(targets_N), 1)
        chosen_N1 = torch.empty(len(targets_N), 1)
        for at in _slices(len(targets_N)):
            slice_NV = logits_NV[at].float() * scale
            total_N1[at] = slice_NV.logsumexp(-1, keepdim=True)
            chosen_N1[at] = slice_NV.gather(1, targets_N[at].unsqueeze(1))
        ctx.save_for_backward(hidden_ND, weight_VD, targets_N, total_N1)
        ctx.logits_NV, ctx.scale = logits_NV, scale
        return (chosen_N1 - total_N1).squeeze(1)

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor | None, ...]:
        hidden_ND, weight_VD, targets_N, total_N1 = ctx.saved_tensors
        grad_NV, ctx.logits_NV = ctx.logits_NV, None
        scaled_N1 = grad_N.unsqueeze(1) * ctx.scale
        for at in _slices(len(targets_N)):
            # d log p(target) / d logits = one at the target - probabilities
            slice_NV = grad_NV[at].float().mul_(ctx.scale).sub_(total_N1[at]).exp_().mul_(-scaled_N1[at])
            slice_NV.scatter_add_(1, targets_N[at].unsqueeze(1), scaled_N1[at])
            grad_NV[at] = slice_NV
        return grad_NV @ weight_VD, grad_NV.T @ hidden_ND, None, None


def token_logprobs(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """log p(target) for each of N tokens, in fp32.

    Args:
        hidden_ND: after the final norm, in the dtype of the products, as the output matrix is.
        temperature: the logits are divided by it.
    """
    logprobs_N: Tensor = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, targets_N, 1.0 / temperature
    )
    return logprobs_N


def _slices(count: int) -> list[slice]:
    return [slice(start, start + _SLICE) for start in range(0, count, _SLICE)]
