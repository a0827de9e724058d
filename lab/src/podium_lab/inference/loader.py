"""Which checkpoints are loaded in NumPy: small ones of the plain Llama form that read plain text."""

from __future__ import annotations

from podium.conductor.checkpoint import Checkpoint, is_llama
from podium.plugin_api.model_loaders import LoadedModel, ModelLoader

MAX_PARAMETERS_IN_NUMPY = 50_000_000
"""NumPy runs models of at most so many parameters: with them it is as fast as torch, and starts sooner."""


def _can_load(checkpoint: Checkpoint) -> bool:
    if (
        checkpoint.uses_chat_template
        or not is_llama(checkpoint.config)
        or not (checkpoint.path / "tokenizer.json").is_file()
    ):
        return False
    parameters = checkpoint.parameters()
    return parameters is not None and parameters <= MAX_PARAMETERS_IN_NUMPY


def _load(checkpoint: Checkpoint) -> LoadedModel:
    from podium_lab.inference.numpy_model import NumpyModel  # noqa: PLC0415 - loads NumPy

    return NumpyModel(checkpoint)


LOADER = ModelLoader(_can_load, _load)
