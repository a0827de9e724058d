"""A LoRA of the engine shared_prefix: equal to peft's, resumed exactly, and merged into the policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from podium.conductor.checkpoint import Checkpoint
from podium.errors import CheckpointError
from podium.train.runtime import named_generator
from podium.train.settings import TrainSettings
from podium.train.sft_run import run_sft
from podium.train.shape import ModelShape
from podium.train.shared_prefix.checkpoints import (
    Checkpoints,
    companion_files,
    read_model,
    write_model,
    write_trained,
)
from podium.train.shared_prefix.grpo import find_problems
from podium.train.shared_prefix.lora import LoraSettings, add_lora, lora_layers
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import adamw, optimizer_step
from test_model import SHAPES, fresh, tokens
from tiny_run import SHAPE, write_start

Settings = dict[str, Any]
RANK = LoraSettings(r=3, lora_alpha=12)


def adapt(model: PolicyModel, *, scale: float = 0.0) -> PolicyModel:
    """The model with a LoRA whose product is 0, or of this deviation."""
    add_lora(model.requires_grad_(False).layers, RANK, named_generator("tests/lora"))
    for name, layer in lora_layers(model):
        torch.nn.init.normal_(layer.lora_B, 0.0, scale, generator=named_generator(name))
    return model


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_adapter_computes_and_learns_the_same_in_peft(tmp_path: Path, shape: ModelShape) -> None:
    start = write_start(tmp_path / "start", shape)
    base = tmp_path / "base"
    write_model(fresh(shape), base, config=start.config, companions=companion_files(start.path))
    ours = adapt(fresh(shape), scale=0.2)
    write_trained(ours, tmp_path / "adapter", Checkpoint.read(base))

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    theirs = PeftModel.from_pretrained(model, tmp_path / "adapter", is_trainable=True)
    ids_BT = tokens(2, 12)
    own_BTV, their_BTV = ours(ids_BT), theirs(ids_BT).logits
    torch.testing.assert_close(own_BTV, their_BTV, rtol=1e-4, atol=1e-4)
    for logits in (own_BTV, their_BTV):
        logits.log_softmax(-1)[..., 0].sum().backward()
    block = theirs.base_model.model.model.layers[0]
    wanted = [block.self_attn.q_proj, block.self_attn.k_proj, block.self_attn.v_proj]
    torch.testing.assert_close(
        ours.layers[0].qkv.lora_B.grad,
        torch.cat([module.lora_B["default"].weight.grad for module in wanted]),
        rtol=1e-3,
        atol=1e-4,
    )


def test_only_the_products_are_trained_and_the_copy_has_them_merged() -> None:
    model = adapt(fresh(SHAPES["biases"]), scale=0.2)
    trained = {name.rpartition(".")[2] for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {"lora_A", "lora_B"}
    copy = model.inference_copy()
    assert not any(lora_layers(copy))
    torch.testing.assert_close(copy(tokens(1, 9)), model(tokens(1, 9)), rtol=1e-4, atol=1e-4)


def test_a_lora_goes_on_exactly_from_a_checkpoint(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start")
    kept = Checkpoints(tmp_path / "run", start, start.prompt)
    model, other = adapt(read_model(start)), adapt(read_model(start))
    optimizer, other_optimizer = adamw(model), adamw(other)

    def step(model: PolicyModel, optimizer: torch.optim.Optimizer, name: str) -> None:
        for parameter in filter(lambda weight: weight.requires_grad, model.parameters()):
            parameter.grad = torch.randn(parameter.shape, generator=named_generator(name))
        optimizer_step(optimizer, model, rate=1e-2)

    step(model, optimizer, "one")
    saved = kept.save(model, optimizer, 1)
    assert kept.restore(saved, other, other_optimizer) == 1
    step(model, optimizer, "two")
    step(other, other_optimizer, "two")
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, other.state_dict()[name]), name

    (saved / "lora.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match=r"lora\.safetensors cannot be read"):
        kept.restore(saved, other, other_optimizer)


def test_a_run_with_a_lora_leaves_an_adapter_and_a_merged_policy(tmp_path: Path, settings: Settings) -> None:
    start = write_start(tmp_path / "start", replace(SHAPE, positions=1024))
    settings |= {"engine": "shared_prefix", "stage": "sft", "trl": {}, "lora": {"r": 2, "lora_alpha": 8}}
    settings |= {"start": str(start.path), "sft": {"count": 4, "batch": 2, "lr": 1e-2}}
    policy = run_sft(TrainSettings.model_validate(settings), tmp_path / "run")
    before = read_model(start).state_dict()
    changed = {
        name.split(".", 2)[-1]
        for name, weight in read_model(Checkpoint.read(policy)).state_dict().items()
        if not torch.equal(weight, before[name])
    }
    assert changed == {"qkv.weight", "output.weight", "gate_up.weight", "down.weight"}
    assert (policy.parent / "trained" / "adapter_model.safetensors").stat().st_size < 100_000


@pytest.mark.parametrize("lora", [{"target_modules": "all-linear"}, {"r": 0}, {"lora_alpha": "high"}])
def test_an_argument_that_the_engine_lacks_is_refused(lora: Settings) -> None:
    (refusal,) = find_problems(TrainSettings(start="-", engine="shared_prefix", lora=lora), None, 1)
    assert f"lora.{next(iter(lora))}: the engine shared_prefix takes lora.r and lora.lora_alpha" in str(
        refusal
    )
