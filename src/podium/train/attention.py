"""Attention of a group's completions to the prompt that they share, without copying the prompt.

One large product gives the scores against the prompt for the whole group, and a small causal product for each row gives
the scores within a completion. One softmax spans both. The backward pass is written out, because autograd's would read
the scores twice as often. Shape suffixes: B questions x key/value heads, G rows, M query heads of a key/value head x
positions, T positions, P prompt positions, D head size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _SharedPromptAttention(torch.autograd.Function):
    """See `attend_shared`. Saves unnormalised probabilities and the inverse of their sums for the backward pass."""

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        query_BGMD: Tensor,
        prompt_key_BPD: Tensor,
        prompt_value_BPD: Tensor,
        key_BGTD: Tensor,
        value_BGTD: Tensor,
        prompt_bias_B1P: Tensor | None,
        causal_MT: Tensor,
    ) -> Tensor:
        B, G, M, D = query_BGMD.shape
        T = key_BGTD.shape[2]
        query = query_BGMD * D**-0.5
        flat, rows = query.view(B, G * M, D), query.view(B * G, M, D)
        key, value = key_BGTD.reshape(B * G, T, D), value_BGTD.reshape(B * G, T, D)

        if prompt_bias_B1P is None:
            prompt = torch.bmm(flat, prompt_key_BPD.transpose(1, 2))
        else:
            prompt = torch.baddbmm(prompt_bias_B1P, flat, prompt_key_BPD.transpose(1, 2))
        own = torch.baddbmm(causal_MT, rows, key.transpose(1, 2))
        own_flat = own.view(B, G * M, T)
        top = torch.maximum(prompt.amax(-1, keepdim=True), own_flat.amax(-1, keepdim=True))
        prompt.sub_(top).exp_()
        own_flat.sub_(top).exp_()
        inverse = prompt.sum(-1, keepdim=True).add_(own_flat.sum(-1, keepdim=True)).reciprocal_()
        output = torch.bmm(prompt, prompt_value_BPD)
        output.view(B * G, M, D).add_(torch.bmm(own, value))
        output.mul_(inverse)
        ctx.save_for_backward(
            query, prompt_key_BPD, prompt_value_BPD, key, value, output, prompt, own, inverse
        )
        return output.view(B, G, M, D)

    @staticmethod
    def backward(ctx: Any, grad_BGMD: Tensor) -> tuple[Tensor | None, ...]:
        query, prompt_key, prompt_value, key, value, output, prompt, own, inverse = ctx.saved_tensors
        B, G, M, D = query.shape
        T = key.shape[1]
        flat, rows = query.view(B, G * M, D), query.view(B * G, M, D)
        # Scaling the gradient once by 1/sum is cheaper than normalising both probability matrices.
        grad = grad_BGMD.reshape(B, G * M, D) * inverse
        grad_rows = grad.view(B * G, M, D)
        shift = (grad * output).sum(-1, keepdim=True).neg_()

        grad_prompt_value = torch.bmm(prompt.transpose(1, 2), grad)
        grad_value = torch.bmm(own.transpose(1, 2), grad_rows)
        prompt_score = torch.baddbmm(shift, grad, prompt_value.transpose(1, 2)).mul_(prompt)
        own_score = torch.baddbmm(shift.view(B * G, M, 1), grad_rows, value.transpose(1, 2)).mul_(own)
        grad_query = torch.bmm(prompt_score, prompt_key)
        grad_query.view(B * G, M, D).add_(torch.bmm(own_score, key))
        grad_query.mul_(D**-0.5)
        grad_prompt_key = torch.bmm(prompt_score.transpose(1, 2), flat)
        grad_key = torch.bmm(own_score.transpose(1, 2), rows)
        return (
            grad_query.view(B, G, M, D),
            grad_prompt_key,
            grad_prompt_value,
            grad_key.view(B, G, T, D),
            grad_value.view(B, G, T, D),
            None,
            None,
        )


def attend_shared(
    query_BGMD: Tensor,
    prompt_key_BPD: Tensor,
    prompt_value_BPD: Tensor,
    key_BGTD: Tensor,
    value_BGTD: Tensor,
    *,
    prompt_bias_B1P: Tensor | None,
    causal_MT: Tensor,
) -> Tensor:
    """Attention of G rows to P shared and up to T own positions. Gradients flow to all five tensors.

    Args:
        prompt_bias_B1P: 0 where a prompt has a token and -inf where it is padding; None: no padding.
        causal_MT: 0 where a query may attend to a position of its own row, -inf elsewhere.

    Returns:
        The mixed values, shaped like the query.
    """
    output: Tensor = _SharedPromptAttention.apply(  # type: ignore[no-untyped-call]
        query_BGMD,
        prompt_key_BPD,
        prompt_value_BPD,
        key_BGTD,
        value_BGTD,
        prompt_bias_B1P,
        causal_MT,
    )
    return output


class _Place(torch.autograd.Function):
    """Copies rows to distinct places of a zero tensor. The backward pass only reads them back: nothing is summed."""

    @staticmethod
    def forward(ctx: Any, rows_ND: Tensor, places_N: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places_N)
        return rows_ND.new_zeros(size, rows_ND.shape[1]).index_copy_(0, places_N, rows_ND)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (places_N,) = ctx.saved_tensors
        return grad.index_select(0, places_N), None, None


class _Pick(torch.autograd.Function):
    """Reads distinct rows; the inverse of `_Place`."""

    @staticmethod
    def forward(ctx: Any, rows_SD: Tensor, places_N: Tensor) -> Tensor:
        ctx.save_for_backward(places_N)
        ctx.size = rows_SD.shape[0]
        return rows_SD.index_select(0, places_N)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor, None]:
        (places_N,) = ctx.saved_tensors
        return grad_ND.new_zeros(ctx.size, grad_ND.shape[1]).index_copy_(0, places_N, grad_ND), None


def place(rows_ND: Tensor, places_N: Tensor, size: int) -> Tensor:
    """A `[size, D]` tensor of zeros that holds row n at `places_N[n]`; places are distinct."""
    placed: Tensor = _Place.apply(  # type: ignore[no-untyped-call]
        rows_ND, places_N, size
    )
    return placed


def pick(rows_SD: Tensor, places_N: Tensor) -> Tensor:
    """The rows at `places_N`, which are distinct."""
    picked: Tensor = _Pick.apply(  # type: ignore[no-untyped-call]
        rows_SD, places_N
    )
    return picked
