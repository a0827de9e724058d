"""Merges a trained adapter into the model that it was trained on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME

from podium.conductor.checkpoint import Checkpoint
from podium.errors import CheckpointError

_MOST_LOST = 0.1
"""The greatest rounding error of the logits that is accepted, as a share of the change that was learned."""


def merge_adapter(base: Checkpoint, saved: Path, folder: Path) -> None:
    """Write the start with the adapter merged into its weights. The merge is computed in float32.

    The weights have the start's dtype, or float32 if rounding to that dtype would lose what was learned.

    Raises:
        CheckpointError: the start or the adapter cannot be read, or the merged model would not write the same text as
            the trained model.
    """
    start: Any = _read(AutoModelForCausalLM.from_pretrained, base.path, dtype="auto", trust_remote_code=False)
    start.to(torch.float32).eval()
    tied = start.config.tie_word_embeddings
    ids_BL = torch.linspace(0, start.get_input_embeddings().weight.shape[0] - 1, 32).long()[None]
    start_BLV = _logits(start, ids_BL)
    trained = _read(PeftModel.from_pretrained, start, saved).eval()
    expected_BLV = _logits(trained, ids_BL)
    _untie(trained)
    merged: Any = trained.merge_and_unload()
    embedding, head = merged.get_input_embeddings(), merged.get_output_embeddings()
    merged.config.tie_word_embeddings = tied and torch.equal(embedding.weight, head.weight)
    merged.tie_weights()
    difference = float((_logits(merged, ids_BL) - expected_BLV).abs().max())
    if not difference <= 1e-3 * max(1.0, float(expected_BLV.abs().max())):
        raise CheckpointError(
            f"The adapter in {saved} cannot be merged into {base.path}: the merged model's logits differ by "
            f"{difference:.3g} from those that were trained. Train with another lora.target_modules or "
            "lora.modules_to_save."
        )
    merged.save_pretrained(folder)
    if (dtype := _stored_dtype(base)) == torch.float32:
        return
    for weight in merged.parameters():
        weight.data = weight.data.to(dtype).to(torch.float32)
    lost = (_logits(merged, ids_BL) - expected_BLV).norm()
    if lost <= _MOST_LOST * (expected_BLV - start_BLV).norm():
        (folder / SAFE_WEIGHTS_INDEX_NAME).unlink(missing_ok=True)  # Half the bytes may need fewer files.
        merged.to(dtype).save_pretrained(folder)


def _read(from_pretrained: Callable[..., Any], *source: Any, **options: Any) -> Any:
    try:
        return from_pretrained(*source, **options)
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{source[-1]} cannot be read: {error}") from None


def _logits(model: Any, ids_BL: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        logits_BLV: torch.Tensor = model(ids_BL).logits
    return logits_BLV


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
