"""Muon on the layers' matrices, against torch's own."""

from __future__ import annotations

import torch

from podium.train.shape import ModelShape
from podium.train.shared_prefix.policy_model import PolicyModel
from podium_lab.warmstart.muon import muon, step


def test_muon_takes_matrices_of_layers_and_adamw_the_rest_at_own_rates() -> None:
    model = PolicyModel(ModelShape(vocab=50, hidden=16, layers=2, heads=2, kv_heads=1, head_size=8, inner=24))
    model.initialise(torch.Generator().manual_seed(0))
    optimizers = muon(model)
    held = [parameter for o in optimizers for group in o.param_groups for parameter in group["params"]]
    assert len(held) == len(list(model.parameters()))
    assert {id(parameter) for parameter in held} == {id(parameter) for parameter in model.parameters()}
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    model(torch.arange(50).view(1, -1)).square().mean().backward()
    step(optimizers, model, rates=[1e-2, 0.0])
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    assert moved == {name for name, weight in before.items() if weight.ndim == 2 and "layers" in name}


def test_muon_updates_each_part_of_a_fused_matrix_as_torch_does() -> None:
    """As torch's Muon takes the same matrices apart, over two steps, so that its momentum counts."""
    shape = ModelShape(vocab=50, hidden=16, layers=1, heads=2, kv_heads=1, head_size=8, inner=24)
    model = PolicyModel(shape)
    model.initialise(torch.Generator().manual_seed(0))
    rows = {"qkv": (16, 8, 8), "output": (16,), "gate_up": (24, 24), "down": (16,)}
    parts = {
        name: [torch.nn.Parameter(part.clone()) for part in weights(model, name).detach().split(count)]
        for name, count in rows.items()
    }
    ours = muon(model)
    theirs = torch.optim.Muon(
        [part for group in parts.values() for part in group],
        lr=1e-2,
        weight_decay=0.0,
        adjust_lr_fn="match_rms_adamw",
    )
    for _ in range(2):
        model(torch.arange(50).view(1, -1)).square().mean().backward()
        for name, group in parts.items():
            for part, grad in zip(group, weights(model, name).grad.split(rows[name]), strict=True):
                part.grad = grad.clone()
        theirs.step()
        step(ours, model, rates=[1e-2, 0.0], max_norm=1e9)
    for name, group in parts.items():
        torch.testing.assert_close(weights(model, name), torch.cat(group), msg=name)


def test_muon_does_not_change_weights_with_zero_gradients() -> None:
    model = PolicyModel(ModelShape(vocab=50, hidden=16, layers=1, heads=2, kv_heads=1, head_size=8, inner=24))
    model.initialise(torch.Generator().manual_seed(0))
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    step(muon(model), model, rates=[1e-2, 1e-2])
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())


def weights(model: PolicyModel, module: str) -> torch.nn.Parameter:
    return getattr(model.layers[0], module).weight
