"""Attention of a group's completions to the prompt that they share, without copying the prompt.

One large product gives the scores against the prompt for the whole group, and a small causal product for each row gives
the scores within a completion. One softmax spans both. A token that several rows begin with has its queries only in one
row, but its keys and values in all of them. The backward pass is written by hand, since autograd's would read the
scores twice as often. Shape suffixes: N queries, B key/value heads, G rows, M query heads of a key/value
head x positions, T positions, S seats, P prompt positions, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class QueryLayout:
    """The seat of each query when it attends to the prompt, and its cell when it attends to its own row."""

    seats_N: Tensor
    """The seat of each query in the flattened [B, S]. All are distinct."""
    seats: int
    """The number of seats, S."""
    cells_N: Tensor
    """The cell of each query in the flattened [B, G, M]. All are distinct."""


class _SharedPromptAttention(torch.autograd.Function):
    """The autograd step of `attend_shared`. It saves unnormalised probabilities and the inverse of their sums."""

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        query_ND: Tensor,
        prompt_key_BPD: Tensor,
        prompt_value_BPD: Tensor,
        key_BGTD: Tensor,
        value_BGTD: Tensor,
        layout: QueryLayout,
        causal_MT: Tensor,
    ) -> Tensor:
        B, G, T, D = key_BGTD.shape
        at_prompt, at_own = (B, layout.seats, layout.seats_N), (B * G, len(causal_MT), layout.cells_N)
        query = query_ND * D**-0.5
        seated, rows = _scatter(query, *at_prompt), _scatter(query, *at_own)
        key, value = key_BGTD.reshape(B * G, T, D), value_BGTD.reshape(B * G, T, D)

        prompt = torch.bmm(seated, prompt_key_BPD.transpose(1, 2))
        own = torch.baddbmm(causal_MT, rows, key.transpose(1, 2))
        top = torch.maximum(
            _gather(prompt.amax(-1, keepdim=True), layout.seats_N),
            _gather(own.amax(-1, keepdim=True), layout.cells_N),
        )
        prompt.sub_(_scatter(top, *at_prompt)).exp_()
        own.sub_(_scatter(top, *at_own)).exp_()
        inverse = _gather(prompt.sum(-1, keepdim=True), layout.seats_N)
        inverse.add_(_gather(own.sum(-1, keepdim=True), layout.cells_N)).reciprocal_()
        output = _gather(torch.bmm(prompt, prompt_value_BPD), layout.seats_N)
        output.add_(_gather(torch.bmm(own, value), layout.cells_N)).mul_(inverse)
        ctx.save_for_backward(
            seated, rows, prompt_key_BPD, prompt_value_BPD, key, value, output, prompt, own, inverse
        )
        ctx.layout, ctx.size = layout, key_BGTD.shape
        return output

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        seated, rows, prompt_key, prompt_value, key, value, output, prompt, own, inverse = ctx.saved_tensors
        seats_N, cells_N = ctx.layout.seats_N, ctx.layout.cells_N
        at_prompt, at_own = (*seated.shape[:2], seats_N), (*rows.shape[:2], cells_N)
        # Scaling the gradient once by 1/sum is cheaper than normalising both probability matrices.
        grad = grad_ND * inverse
        shift = (grad * output).sum(-1, keepdim=True).neg_()
        grad_seated, grad_rows = _scatter(grad, *at_prompt), _scatter(grad, *at_own)

        grad_prompt_value = torch.bmm(prompt.transpose(1, 2), grad_seated)
        grad_value = torch.bmm(own.transpose(1, 2), grad_rows)
        prompt_score = torch.baddbmm(_scatter(shift, *at_prompt), grad_seated, prompt_value.transpose(1, 2))
        prompt_score.mul_(prompt)
        own_score = torch.baddbmm(_scatter(shift, *at_own), grad_rows, value.transpose(1, 2)).mul_(own)
        grad_query = _gather(torch.bmm(prompt_score, prompt_key), seats_N)
        grad_query.add_(_gather(torch.bmm(own_score, key), cells_N)).mul_(key.shape[-1] ** -0.5)
        return (
            grad_query,
            torch.bmm(prompt_score.transpose(1, 2), seated),
            grad_prompt_value,
            torch.bmm(own_score.transpose(1, 2), rows).view(ctx.size),
            grad_value.view(ctx.size),
            None,
            None,
        )


def attend_shared(
    query_ND: Tensor,
    prompt_key_BPD: Tensor,
    prompt_value_BPD: Tensor,
    key_BGTD: Tensor,
    value_BGTD: Tensor,
    *,
    layout: QueryLayout,
    causal_MT: Tensor,
) -> Tensor:
    """Attention of queries to P shared and up to T own positions. Gradients flow to all five tensors.

    Args:
        causal_MT: 0 where a query may attend to a position of its own row, -inf elsewhere.

    Returns:
        The mixed values, shaped like the query.
    """
    output: Tensor = _SharedPromptAttention.apply(  # type: ignore[no-untyped-call]
        query_ND,
        prompt_key_BPD,
        prompt_value_BPD,
        key_BGTD,
        value_BGTD,
        layout,
        causal_MT,
    )
    return output


def _scatter(rows_ND: Tensor, batch: int, height: int, indices_N: Tensor) -> Tensor:
    """[batch, height, D]: zeros, except for row n at `indices_N[n]` of the flattened [batch, height]."""
    D = rows_ND.shape[1]
    return rows_ND.new_zeros(batch * height, D).index_copy_(0, indices_N, rows_ND).view(batch, height, D)


def _gather(scattered: Tensor, indices_N: Tensor) -> Tensor:
    """The rows that `_scatter` scattered."""
    return scattered.view(-1, scattered.shape[-1]).index_select(0, indices_N)
