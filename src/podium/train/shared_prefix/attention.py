"""Attention of a group's completions to the prompt that they share, without copying the prompt.

One large product gives the scores against the prompt for the whole group, and a small causal product for each row gives
the scores within a completion. One softmax spans both. A token that several rows begin with has its queries only in one
row, but its keys and values in all of them. The backward pass is written by hand, since autograd's would read the
scores twice as often. Shape suffixes: N queries, B key/value heads, G rows, M query heads of a key/value
head x positions, T positions, S rows of queries at the prompt, P prompt positions, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class QueryLayout:
    """Where each query stands when it attends to the prompt, and when it attends to its own row."""

    prompt_index_N: Tensor
    """The index of each query in the flattened [B, S], for the prompt. All are distinct."""
    prompt_rows: int
    """S, the number of queries at the prompt for each key/value head."""
    own_index_N: Tensor
    """The index of each query in the flattened [B, G, M], for its own row. All are distinct."""


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
        prompt_index_N, own_index_N = layout.prompt_index_N, layout.own_index_N
        at_prompt, at_own = (B, layout.prompt_rows, prompt_index_N), (B * G, len(causal_MT), own_index_N)
        query = query_ND * D**-0.5
        prompt_query, own_query = _scatter(query, *at_prompt), _scatter(query, *at_own)
        key, value = key_BGTD.reshape(B * G, T, D), value_BGTD.reshape(B * G, T, D)

        prompt = torch.bmm(prompt_query, prompt_key_BPD.transpose(1, 2))
        own = torch.baddbmm(causal_MT, own_query, key.transpose(1, 2))
        top = torch.maximum(
            _gather(prompt.amax(-1, keepdim=True), prompt_index_N),
            _gather(own.amax(-1, keepdim=True), own_index_N),
        )
        prompt.sub_(_scatter(top, *at_prompt)).exp_()
        own.sub_(_scatter(top, *at_own)).exp_()
        inverse = _gather(prompt.sum(-1, keepdim=True), prompt_index_N)
        inverse.add_(_gather(own.sum(-1, keepdim=True), own_index_N)).reciprocal_()
        output = _gather(torch.bmm(prompt, prompt_value_BPD), prompt_index_N)
        output.add_(_gather(torch.bmm(own, value), own_index_N)).mul_(inverse)
        ctx.save_for_backward(
            prompt_query,
            own_query,
            prompt_key_BPD,
            prompt_value_BPD,
            key,
            value,
            output,
            prompt,
            own,
            inverse,
        )
        ctx.layout, ctx.size = layout, key_BGTD.shape
        return output

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        prompt_query, own_query, prompt_key, prompt_value, key, value, *results = ctx.saved_tensors
        output, prompt, own, inverse = results
        prompt_index_N, own_index_N = ctx.layout.prompt_index_N, ctx.layout.own_index_N
        at_prompt, at_own = (*prompt_query.shape[:2], prompt_index_N), (*own_query.shape[:2], own_index_N)
        # Scaling the gradient once by 1/sum is cheaper than normalising both probability matrices.
        grad = grad_ND * inverse
        shift = (grad * output).sum(-1, keepdim=True).neg_()
        grad_prompt, grad_own = _scatter(grad, *at_prompt), _scatter(grad, *at_own)

        grad_prompt_value = torch.bmm(prompt.transpose(1, 2), grad_prompt)
        grad_value = torch.bmm(own.transpose(1, 2), grad_own)
        prompt_score = torch.baddbmm(_scatter(shift, *at_prompt), grad_prompt, prompt_value.transpose(1, 2))
        prompt_score.mul_(prompt)
        own_score = torch.baddbmm(_scatter(shift, *at_own), grad_own, value.transpose(1, 2)).mul_(own)
        grad_query = _gather(torch.bmm(prompt_score, prompt_key), prompt_index_N)
        grad_query.add_(_gather(torch.bmm(own_score, key), own_index_N)).mul_(key.shape[-1] ** -0.5)
        return (
            grad_query,
            torch.bmm(prompt_score.transpose(1, 2), prompt_query),
            grad_prompt_value,
            torch.bmm(own_score.transpose(1, 2), own_query).view(ctx.size),
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
