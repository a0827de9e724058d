"""Reads and writes policies as Hugging Face folders, and keeps the checkpoints of a training run.

The layers here fuse query, key and value into one matrix, and gate and up into another. On disk these matrices are
separate, under Hugging Face's names. A run's checkpoint is such a folder with the state of the optimiser and of the
training, and the LoRA if there is one, so `podium ask` can use it as a Conductor. `podium.conductor.checkpoint` reads
and describes checkpoint folders.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from podium.conductor.checkpoint import Checkpoint, PodiumFile
from podium.conductor.prompt import PromptSettings
from podium.errors import CheckpointError
from podium.files.atomic import atomic_folder
from podium.train.shape import ModelShape
from podium.train.shared_prefix.lora import lora_layers
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.trained_policy import TOKENIZER_FILES, saving

_TRAINING_STATE = "training.json"
_OPTIMIZER = "optimizer.safetensors"
_LORA = "lora.safetensors"
StoredDtype = Literal["float32", "bfloat16"]

_WAY_OUT = "restore the checkpoint's folder, or train in a new one"


def read_model(checkpoint: Checkpoint) -> PolicyModel:
    """The model of a checkpoint, in fp32.

    Raises:
        CheckpointError: the checkpoint has another architecture, or weights that are missing, unknown or of other
            sizes.
    """
    shape = ModelShape.read(checkpoint.config, str(checkpoint.path / "config.json"))
    path = checkpoint.path / "model.safetensors"
    if not path.is_file():
        raise CheckpointError(f"{checkpoint.path} has no model.safetensors; save the checkpoint as one file.")
    try:
        stored = load_file(path)
    except SafetensorError:
        raise CheckpointError(f"{path} is not a safetensors file; save the checkpoint again.") from None
    model = PolicyModel(shape)
    if shape.tied and (embedding := stored.get("model.embed_tokens.weight")) is not None:
        stored["lm_head.weight"] = embedding
    state = {}
    for name, parameter in model.state_dict().items():
        parts = [stored.pop(part).float() for part, _ in stored_names(name, shape) if part in stored]
        size = [sum(map(len, parts)), *parts[0].shape[1:]] if parts else None
        if size != list(parameter.shape):
            raise CheckpointError(
                f"{path} does not fit its config.json: {name} should be {list(parameter.shape)} and is "
                f"{'missing' if size is None else size}."
            )
        state[name] = torch.cat(parts)
    if unknown := sorted(name for name in stored if not name.endswith(".rotary_emb.inv_freq")):
        raise CheckpointError(f"{path} has {unknown[0]}, which this trainer does not support.")
    model.load_state_dict(state)
    return model


def write_model(
    model: PolicyModel,
    folder: Path,
    *,
    config: Mapping[str, Any],
    companions: Sequence[Path],
    dtype: StoredDtype = "float32",
) -> None:
    """Write the model as a folder that transformers loads.

    Args:
        folder: the folder, which is made if it does not exist.
        config: the content of `config.json`, from `ModelShape.config` or from a checkpoint.
        companions: files to copy into the folder, such as those of the tokenizer and podium.json.
        dtype: the dtype of the stored weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights, settings = folder / "model.safetensors", folder / "config.json"
    tensors = dict(stored_tensors(model))
    save_file(
        {name: tensor.to(getattr(torch, dtype)) for name, tensor in tensors.items()},
        weights,
        metadata={"format": "pt"},
    )
    written = {key: value for key, value in config.items() if key != "torch_dtype"} | {"dtype": dtype}
    settings.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    weights.chmod(settings.stat().st_mode)  # safetensors makes the file readable only for its owner.
    for companion in companions:
        (folder / companion.name).write_bytes(companion.read_bytes())


def write_trained(model: PolicyModel, folder: Path, start: Checkpoint) -> None:
    """Write what a run has trained from `start`: the model, or its LoRA as an adapter that peft reads.

    Raises:
        StoreError: the disk is full or not writable.
    """
    with saving(folder):
        if any(lora_layers(model)):
            _write_adapter(model, folder, start)
        else:
            write_model(model, folder, config=start.config, companions=companion_files(start.path))


def _write_adapter(model: PolicyModel, folder: Path, start: Checkpoint) -> None:
    from peft import LoraConfig  # noqa: PLC0415 - takes seconds, and most runs train all weights

    tensors: dict[str, Tensor] = {}
    for name, layer in lora_layers(model):
        parts = stored_names(f"{name}.weight", model.shape)
        pieces = torch.split(layer.lora_B.detach(), [rows for _, rows in parts])
        for (part, _), piece in zip(parts, pieces, strict=True):
            module = f"base_model.model.{part.removesuffix('.weight')}"
            tensors[f"{module}.lora_A.weight"] = layer.lora_A.detach().clone()
            tensors[f"{module}.lora_B.weight"] = piece.contiguous()
    LoraConfig(
        task_type="CAUSAL_LM",
        r=len(layer.lora_A),
        lora_alpha=layer.alpha,
        target_modules=sorted({name.split(".")[-3] for name in tensors}),
        base_model_name_or_path=str(start.path),
    ).save_pretrained(str(folder))
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def companion_files(folder: Path) -> list[Path]:
    """The files of a checkpoint folder that go into a run's checkpoints: the tokenizer's, and podium.json."""
    return [folder / name for name in (*TOKENIZER_FILES, "podium.json") if (folder / name).is_file()]


def stored_tensors(model: PolicyModel) -> Iterator[tuple[str, Tensor]]:
    """The weights under Hugging Face's names, with a LoRA merged. The head of a tied model is left out."""
    for name, tensor in model.full_weights().items():
        if name == "head.weight" and model.shape.tied:
            continue
        parts = stored_names(name, model.shape)
        for (part, _), piece in zip(parts, torch.split(tensor, [rows for _, rows in parts]), strict=True):
            yield part, piece.contiguous()


def stored_names(name: str, shape: ModelShape) -> list[tuple[str, int]]:
    """The names of the tensors that store one parameter of the model, each with its number of rows."""
    if name == "embedding.weight":
        return [("model.embed_tokens.weight", shape.vocab)]
    if name == "norm.weight":
        return [("model.norm.weight", shape.hidden)]
    if name == "head.weight":
        return [("lm_head.weight", shape.vocab)]
    _, index, module, kind = name.split(".")
    prefix = f"model.layers.{index}"
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    parts = {
        "attention_norm": [("input_layernorm", shape.hidden)],
        "qkv": [("self_attn.q_proj", queries), ("self_attn.k_proj", keys), ("self_attn.v_proj", keys)],
        "output": [("self_attn.o_proj", shape.hidden)],
        "inner_norm": [("post_attention_layernorm", shape.hidden)],
        "gate_up": [("mlp.gate_proj", shape.inner), ("mlp.up_proj", shape.inner)],
        "down": [("mlp.down_proj", shape.hidden)],
    }[module]
    return [(f"{prefix}.{part}.{kind}", rows) for part, rows in parts]


class Checkpoints:
    """Saves and restores the checkpoints of a run. Only the newest checkpoint is kept."""

    def __init__(self, folder: Path, start: Checkpoint, prompt: PromptSettings) -> None:
        self.folder = folder
        self.start = start
        """The checkpoint that the run starts from. Its configuration and tokenizer are copied into every checkpoint."""
        self.prompt = prompt
        """How the policy is prompted in this run."""

    def latest(self) -> Path | None:
        """The newest checkpoint that was written completely. None if there is none."""
        return max(self._complete_checkpoints(), default=None, key=lambda path: int(path.name))

    def save(self, model: PolicyModel, optimizer: torch.optim.Optimizer, iterations: int) -> Path:
        """Write a checkpoint after so many iterations, then remove older checkpoints.

        Raises:
            StoreError: the disk is full or not writable.
        """
        path = self.folder / f"{iterations:06d}"
        companions = companion_files(self.start.path)
        about = PodiumFile(prompt=self.prompt, conducts=self.start.scope)
        with saving(path), atomic_folder(path) as part:
            write_model(model, part, config=self.start.config, companions=companions)
            text = about.model_dump_json(exclude_none=True, indent=2)
            (part / "podium.json").write_text(text + "\n", encoding="utf-8")
            save_file(_moments(model, optimizer), part / _OPTIMIZER)
            if lora := _lora_weights(model):
                save_file(lora, part / _LORA)
            state = json.dumps({"iteration": iterations})
            (part / _TRAINING_STATE).write_text(state + "\n", encoding="utf-8")
        for older in self._complete_checkpoints():
            if older != path:
                shutil.rmtree(older)
        return path

    def restore(self, path: Path, model: PolicyModel, optimizer: torch.optim.Optimizer) -> int:
        """Load a checkpoint's weights and optimiser state into the model and the optimiser.

        Returns:
            The number of finished iterations.

        Raises:
            CheckpointError: a file of the checkpoint is missing, is cut, or belongs to another checkpoint.
        """
        if lora := _lora_weights(model):
            model.load_state_dict(_read_lora(path / _LORA, lora), strict=False)
        else:
            model.load_state_dict(read_model(Checkpoint.read(path)).state_dict())
        parameters = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        for name, state in _read_moments(path / _OPTIMIZER, parameters).items():
            device = parameters[name].device
            optimizer.state[parameters[name]] = {key: value.to(device) for key, value in state.items()}
        try:
            return int(json.loads((path / _TRAINING_STATE).read_text(encoding="utf-8"))["iteration"])
        except (ValueError, TypeError, KeyError):
            raise CheckpointError(f"{path / _TRAINING_STATE} is cut or damaged; {_WAY_OUT}.") from None

    def _complete_checkpoints(self) -> list[Path]:
        return [path for path in self.folder.glob("[0-9]*") if (path / _TRAINING_STATE).is_file()]


def _lora_weights(model: PolicyModel) -> dict[str, Tensor]:
    """The trained parameters of a LoRA, by name. Empty if all weights are trained."""
    if not any(lora_layers(model)):
        return {}
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


def _read_lora(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    stored = _load(path)
    if {name: weight.shape for name, weight in stored.items()} != {
        name: weight.shape for name, weight in expected.items()
    }:
        raise CheckpointError(f"{path} is not the LoRA of this run; {_WAY_OUT}.")
    return stored


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); {_WAY_OUT}.") from None


def _read_moments(path: Path, parameters: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The optimiser's state of each parameter, by the parameter's name. It is empty before the first step."""
    stored = _load(path)
    states: dict[str, dict[str, Tensor]] = {}
    for key, value in stored.items():
        name, _, moment = key.rpartition("/")
        states.setdefault(name, {})[moment] = value
        if name not in parameters or value.shape not in ((), parameters[name].shape):
            raise CheckpointError(f"{path} is not the optimiser's state of this model; {_WAY_OUT}.")
    if states and len(states) < len(parameters):
        raise CheckpointError(f"{path} lacks parameters of this model; {_WAY_OUT}.")
    return states


def _moments(model: PolicyModel, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
