"""Merges a trained adapter into the model that it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from podium.conductor.checkpoint import Checkpoint
from podium.errors import CheckpointError


def merge_adapter(base: Checkpoint, saved: Path, folder: Path) -> None:
    """Write the start with the adapter merged into its weights, in the start's dtype. The merge is computed in float32.

    Raises:
        CheckpointError: the merged model would not write the same text as the trained model.
    """
    start: Any = AutoModelForCausalLM.from_pretrained(base.path, dtype="auto", trust_remote_code=False)
    tied = start.config.tie_word_embeddings
    trained = PeftModel.from_pretrained(start.to(torch.float32), saved).eval()
    ids_BL = torch.linspace(0, start.get_input_embeddings().weight.shape[0] - 1, 32).long()[None]
    with torch.no_grad():
        expected_BLV = trained(ids_BL).logits
    _untie(trained)
    merged: Any = trained.merge_and_unload()
    embedding, head = merged.get_input_embeddings(), merged.get_output_embeddings()
    merged.config.tie_word_embeddings = tied and torch.equal(embedding.weight, head.weight)
    merged.tie_weights()
    with torch.no_grad():
        difference = float((merged(ids_BL).logits - expected_BLV).abs().max())
    if not difference <= 1e-3 * max(1.0, float(expected_BLV.abs().max())):
        raise CheckpointError(
            f"The adapter in {saved} cannot be merged into {base.path}: the merged model's logits differ by "
            f"{difference:.3g} from those that were trained. Train with another lora.target_modules or "
            "lora.modules_to_save."
        )
    merged.to(_stored_dtype(base)).save_pretrained(folder)


def _untie(model: torch.nn.Module) -> None:
    """Give each module its own copy of weights that it shares with another module.

    Otherwise an adapter of the embedding would be merged into the output head too, which shares its weights.
    """
    seen: set[int] = set()
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(weight) in seen:
                setattr(module, name, torch.nn.Parameter(weight.detach().clone(), weight.requires_grad))
            seen.add(id(weight))


def _stored_dtype(checkpoint: Checkpoint) -> torch.dtype:
    """The dtype of the start's weights: the merged policy has the same."""
    name = checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype") or "float32"
    return getattr(torch, str(name))  # type: ignore[no-any-return]
