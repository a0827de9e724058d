"""The first layer looks back by fixed distances, the others look for tokens like this one."""

from __future__ import annotations

import pytest
import torch

from podium.train.model import Layer, PolicyModel, rotate
from podium.train.randomness import generator
from podium.train.shape import ModelShape
from podium.train.warmstart.initial import DISTANCES, initialise


@pytest.fixture
def model() -> PolicyModel:
    model = PolicyModel(ModelShape(vocab=300, layers=3, qkv_bias=True))
    initialise(model, generator("initial"))
    return model


@pytest.mark.parametrize("head", range(6))
def test_a_head_of_the_first_layer_looks_its_distance_back(model: PolicyModel, head: int) -> None:
    layer = model.layers[0]
    assert isinstance(layer, Layer)
    bias_HD = layer.qkv.bias.view(-1, model.shape.head_size)
    rotary = model.rotary(torch.arange(12))
    key_head = model.shape.heads + head // model.shape.queries_per_kv
    queries, keys = (
        rotate(bias_HD[h].view(1, 1, -1).expand(12, 1, -1), rotary)[:, 0] for h in (head, key_head)
    )
    scores = queries[11] @ keys.T
    assert int(scores.argmax()) == 11 - DISTANCES[head % len(DISTANCES)]


def test_later_heads_score_a_token_highest_against_itself(model: PolicyModel) -> None:
    layer = model.layers[2]
    assert isinstance(layer, Layer)
    x_ND = torch.randn(40, model.shape.hidden, generator=generator("tokens"))
    qkv = (x_ND @ layer.qkv.weight.T).view(40, -1, model.shape.head_size)
    for head in range(model.shape.heads):
        scores = qkv[:, head] @ qkv[:, model.shape.heads + head // model.shape.queries_per_kv].T
        assert (scores.argmax(1) == torch.arange(40)).float().mean() > 0.95
