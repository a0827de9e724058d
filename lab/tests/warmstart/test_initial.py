"""Weights that can copy before any training."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from podium.train.runtime import named_generator
from podium.train.shape import ModelShape
from podium.train.shared_prefix.policy_model import Layer, PolicyModel, rotate
from podium_lab.warmstart.initial import DISTANCES, initialise

SHAPE = ModelShape(
    vocab=500,
    hidden=192,
    layers=4,
    heads=4,
    kv_heads=2,
    head_size=48,
    inner=512,
    rope_theta=100_000.0,
    qkv_bias=True,
)


@pytest.fixture(scope="module")
def model() -> PolicyModel:
    model = PolicyModel(SHAPE)
    initialise(model, named_generator("initial"))
    return model.requires_grad_(False)


def nats_of_texts_said_twice(model: PolicyModel) -> torch.Tensor:
    """Mean cross-entropy at each place of eight random texts of 50 tokens, each said again."""
    text = torch.randint(SHAPE.vocab, (8, 50), generator=named_generator("texts"))
    tokens = torch.cat((text, text), dim=1)
    logits = model(tokens)[:, :-1]
    return F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none").mean(0)


@pytest.mark.parametrize("head", range(SHAPE.heads))
def test_initial_first_layer_head_attends_to_its_set_distance(model: PolicyModel, head: int) -> None:
    layer = model.layers[0]
    assert isinstance(layer, Layer)
    D = SHAPE.head_size
    bias_HD = layer.qkv.bias.view(-1, D)
    rotary = model.rotary(torch.arange(200))
    queries, keys = (
        rotate(bias_HD[h].view(1, 1, -1).expand(200, 1, -1), rotary)[:, 0]
        for h in (head, SHAPE.heads + head // SHAPE.queries_per_kv)
    )
    looks = (queries[199] @ keys.T * D**-0.5).softmax(-1)
    assert looks[199 - DISTANCES[head]] > 0.7


def test_untrained_copying_weights_predict_a_repeated_text(model: PolicyModel) -> None:
    nats = nats_of_texts_said_twice(model)
    assert nats[55:].mean() < nats[:49].mean() - 0.5


def test_plain_initial_weights_do_not_predict_a_repeated_text() -> None:
    model = PolicyModel(SHAPE)
    model.initialise(named_generator("initial"), 0.05)
    nats = nats_of_texts_said_twice(model)
    assert nats[55:].mean() > nats[:49].mean() - 0.1


@pytest.mark.parametrize(("heads", "kv_heads", "head_size"), [(2, 1, 16), (1, 1, 32), (4, 4, 16), (2, 2, 8)])
def test_other_shapes_can_be_initialised(heads: int, kv_heads: int, head_size: int) -> None:
    shape = ModelShape(
        vocab=60,
        hidden=32,
        layers=3,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        inner=48,
        qkv_bias=True,
    )
    model = PolicyModel(shape)
    initialise(model, named_generator("other"))
    assert model(torch.arange(20).view(1, -1)).isfinite().all()
