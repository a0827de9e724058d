"""The policy that a LoRA run publishes writes what the trained model wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, Qwen2Config

from podium.conductor.checkpoint import Checkpoint
from podium.train.settings import TrainSettings
from podium.train.trained_policy import write_policy
from podium.train.trl.adapters import merge_adapter
from scripted_team import open_team

SIZES = {
    "vocab_size": 96,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}
IDS = torch.arange(3, 90)[None]


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model.eval()(IDS).logits
    return found


def start(folder: Path, config: Any) -> Checkpoint:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config, dtype=config.dtype).save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    return Checkpoint(folder, written, TrainSettings(start="someone/some-model").prompt)


def adapt(base: Checkpoint, saved: Path, lora: dict[str, Any], scale: float = 0.1) -> torch.Tensor:
    """Save an adapter that training has changed, and return the logits of the model in memory."""
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32),
        LoraConfig(task_type="CAUSAL_LM", **{"target_modules": "all-linear", "r": 4, **lora}),
    )
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(scale * torch.randn_like(weight))
    model.save_pretrained(saved)
    return logits(model)


TIED = Qwen2Config(**SIZES, tie_word_embeddings=True)
UNTIED = LlamaConfig(**SIZES, tie_word_embeddings=False)
BOTH = {"modules_to_save": ["embed_tokens", "lm_head"]}


USUAL = [
    (TIED, {}),
    (TIED, {"target_modules": ["q_proj", "lm_head"]}),
    (TIED, {"modules_to_save": ["embed_tokens"]}),
    (TIED, BOTH),
    (UNTIED, {}),
    (UNTIED, BOTH),
]
RARE = [
    (TIED, {"target_modules": ["q_proj", "embed_tokens"]}),
    (TIED, {"target_modules": ["embed_tokens", "lm_head"]}),
    (TIED, {"modules_to_save": ["lm_head"]}),
    (TIED, {"target_modules": ["q_proj", "lm_head"], "modules_to_save": ["embed_tokens"]}),
    (TIED, {"target_modules": ["q_proj", "embed_tokens"], "modules_to_save": ["lm_head"]}),
    (TIED, {"modules_to_save": ["embed_tokens"], "ensure_weight_tying": True}),
    (TIED, {"target_modules": ["q_proj", "embed_tokens"], "ensure_weight_tying": True}),
    (TIED, {"trainable_token_indices": [5, 6, 7]}),
    (TIED, {"use_dora": True}),
    (UNTIED, {"target_modules": ["q_proj", "embed_tokens"]}),
    (Gemma2Config(**SIZES, tie_word_embeddings=True, head_dim=8), {}),
]


@pytest.mark.parametrize(
    ("config", "lora"),
    [*USUAL, *(pytest.param(*row, marks=pytest.mark.nightly) for row in RARE)],
    ids=lambda value: getattr(value, "model_type", str(value)),
)
def test_the_published_policy_has_the_logits_of_the_trained_one(
    config: Any, lora: Any, tmp_path: Path
) -> None:
    base = start(tmp_path / "start", config)
    trained = adapt(base, tmp_path / "run" / "trained", lora)
    assert not torch.allclose(trained, logits(AutoModelForCausalLM.from_pretrained(base.path)), atol=1e-2)
    write_policy(
        tmp_path / "run",
        TrainSettings(engine="trl", start="someone/some-model", lora=lora),
        base,
        open_team(),
    )
    published = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "policy")
    assert torch.allclose(trained, logits(published), atol=1e-4)
    if not lora:
        assert published.config.tie_word_embeddings == config.tie_word_embeddings


@pytest.mark.parametrize(("scale", "dtype"), [(1e-2, torch.bfloat16), (1e-6, torch.float32)])
def test_whole_weights_have_the_starts_dtype_if_that_keeps_the_change(
    scale: float, dtype: torch.dtype, tmp_path: Path
) -> None:
    base = start(tmp_path / "start", LlamaConfig(**SIZES, dtype=torch.bfloat16))
    trained = AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32)
    with torch.no_grad():
        for weight in trained.parameters():
            weight.add_(scale * torch.randn_like(weight))
    trained.save_pretrained(tmp_path / "run" / "trained")
    write_policy(tmp_path / "run", TrainSettings(start="someone/some-model"), base, open_team())

    published = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "policy", dtype="auto")
    assert published.dtype == dtype
    assert (tmp_path / "run" / "policy" / "config.json").read_text().count(str(dtype).removeprefix("torch."))
    torch.testing.assert_close(logits(published.to(torch.float32)), logits(trained), atol=2e-2, rtol=0)


@pytest.mark.parametrize(("scale", "dtype"), [(0.1, torch.bfloat16), (1e-4, torch.float32)])
def test_a_policy_keeps_changes_that_the_starts_dtype_would_round_away(
    scale: float, dtype: torch.dtype, tmp_path: Path
) -> None:
    config = LlamaConfig(**SIZES, tie_word_embeddings=False, dtype=torch.bfloat16)
    base = start(tmp_path / "start", config)
    before = logits(AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32))
    trained = adapt(base, tmp_path / "run" / "trained", {}, scale)
    merge_adapter(base, tmp_path / "run" / "trained", tmp_path / "policy")
    published = AutoModelForCausalLM.from_pretrained(tmp_path / "policy", dtype="auto")
    assert published.dtype == dtype
    lost = (logits(published.to(torch.float32)) - trained).norm()
    assert lost < 0.1 * (trained - before).norm()
