"""Initial weights that already look where a reader of patterns must look.

Copying and looking up need two kinds of attention that a small model from plain random weights takes thousands of
steps to find: to the token a fixed distance back, and to earlier tokens that are like this one. Here the first
layer's heads start as the former, through biases that rotary positions turn into distances, and the others as the
latter, with queries that equal keys ("mimetic initialisation", Trockman and Kolter 2023, arXiv 2305.09828, has the
idea of weights that imitate trained ones). Training is free to change all of it.
"""

from __future__ import annotations

import torch

from podium.train.model import Layer, PolicyModel, rotate

DISTANCES = (1, 2, 3)
"""Tokens back that the first layer's heads look, in turn."""
_DEVIATION = 0.05
_ATTENTION_DEVIATION = 0.08
"""Of keys, values and outputs: equal tokens must stand out among a hundred others."""
_PAIRS = 4
"""Rotary pairs that the first layer's biases use, from the fastest: slow ones cannot tell neighbours apart."""
_PEAK = 8.0
"""Length of these biases: with heads of 32 the right distance has a score of 11 nats."""


@torch.no_grad()
def initialise(model: PolicyModel, generator: torch.Generator) -> None:
    """Fresh weights; the model must have biases on queries and keys."""
    model.initialise(generator, _DEVIATION)
    shape = model.shape
    H, K, D, R = shape.heads, shape.kv_heads, shape.head_size, shape.queries_per_kv
    for index, layer in enumerate(model.layers):
        assert isinstance(layer, Layer)
        weight_HDN = layer.qkv.weight.view(H + 2 * K, D, shape.hidden)
        weight_HDN[H:].normal_(std=_ATTENTION_DEVIATION, generator=generator)
        layer.output.weight.normal_(std=_ATTENTION_DEVIATION, generator=generator)
        if index > 0:
            weight_HDN[:H] = weight_HDN[H : H + K].repeat_interleave(R, dim=0)
            continue
        bias_HD = layer.qkv.bias.view(H + 2 * K, D)
        for key in range(K):
            direction = torch.randn(D, generator=generator)
            direction[_PAIRS : D // 2] = direction[D // 2 + _PAIRS :] = 0.0
            bias_HD[H + key] = direction * (_PEAK / direction.norm())
            for query in range(key * R, (key + 1) * R):
                distance = DISTANCES[query % len(DISTANCES)]
                bias_HD[query] = _turned_back(model, bias_HD[H + key], distance)


def _turned_back(model: PolicyModel, bias_D: torch.Tensor, distance: int) -> torch.Tensor:
    """The query that fits the key `bias_D` best when that stands `distance` tokens earlier."""
    cosine, sine = (part.float() for part in model.rotary(torch.tensor([float(distance)])))
    return rotate(bias_D.view(1, 1, -1), (cosine, -sine)).flatten()
