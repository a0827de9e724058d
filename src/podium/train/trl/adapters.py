"""The weights of a policy: a trained adapter is merged into its start, and weights get the dtype of the start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
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
    from peft import PeftModel  # noqa: PLC0415 - takes seconds, and most policies have no adapter

    start = _read_float32(base.path)
    tied = start.config.tie_word_embeddings
    start_BLV = _logits(start)
    trained = _read(PeftModel.from_pretrained, start, saved).eval()
    expected_BLV = _logits(trained)
    _untie(trained)
    merged: Any = trained.merge_and_unload()
    embedding, head = merged.get_input_embeddings(), merged.get_output_embeddings()
    merged.config.tie_word_embeddings = tied and torch.equal(embedding.weight, head.weight)
    merged.tie_weights()
    difference = float((_logits(merged) - expected_BLV).abs().max())
    if not difference <= 1e-3 * max(1.0, float(expected_BLV.abs().max())):
        raise CheckpointError(
            f"The adapter in {saved} cannot be merged into {base.path}: the merged model's logits differ by "
            f"{difference:.3g} from those that were trained. Train with another lora.target_modules or "
            "lora.modules_to_save."
        )
    merged.save_pretrained(folder)
    _save_in_dtype_of(base, merged, folder, start_BLV, expected_BLV)


def round_weights(base: Checkpoint, saved: Path, folder: Path) -> None:
    """Write the trained model in `saved` over the weights in `folder`, in the start's dtype. `folder` stays as it is if
    rounding to that dtype would lose what was learned, and for a model that reads more than text.

    Raises:
        CheckpointError: the start or the trained model cannot be read.
    """
    architectures = base.config.get("architectures") or ("",)
    if _stored_dtype(base) == torch.float32 or not architectures[0].endswith("ForCausalLM"):
        return
    start_BLV = _logits(_read_float32(base.path))
    trained = _read_float32(saved)
    _save_in_dtype_of(base, trained, folder, start_BLV, _logits(trained))


def _save_in_dtype_of(
    base: Checkpoint, model: Any, folder: Path, start_BLV: torch.Tensor, expected_BLV: torch.Tensor
) -> None:
    """Round the weights to the start's dtype. Save them if the logits keep most of their change since the start."""
    if (dtype := _stored_dtype(base)) == torch.float32:
        return
    for weight in model.parameters():
        weight.data = weight.data.to(dtype).to(torch.float32)
    if (_logits(model) - expected_BLV).norm() <= _MOST_LOST * (expected_BLV - start_BLV).norm():
        (folder / SAFE_WEIGHTS_INDEX_NAME).unlink(missing_ok=True)  # Half the bytes may need fewer files.
        model.to(dtype).save_pretrained(folder)


def _read_float32(path: Path) -> Any:
    model: Any = _read(AutoModelForCausalLM.from_pretrained, path, dtype="auto", trust_remote_code=False)
    return model.to(torch.float32).eval()


def _read(from_pretrained: Callable[..., Any], *source: Any, **options: Any) -> Any:
    try:
        return from_pretrained(*source, **options)
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{source[-1]} cannot be read: {error}") from None


def _logits(model: Any) -> torch.Tensor:
    """The logits after 32 tokens from all over the vocabulary."""
    ids_BL = torch.linspace(0, model.get_input_embeddings().weight.shape[0] - 1, 32).long()[None]
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
    """The dtype of a checkpoint's weights, by its configuration."""
    name = checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype") or "float32"
    return getattr(torch, str(name))  # type: ignore[no-any-return]
