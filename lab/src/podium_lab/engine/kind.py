"""Which checkpoints the NumPy engine runs: small ones of the plain Llama form that read plain text."""

from __future__ import annotations

from podium.conductor.checkpoint import Checkpoint, is_llama
from podium.conductor.inference_engine import InferenceEngine, InferenceEngineKind

MAX_PARAMETERS_IN_NUMPY = 50_000_000
"""NumPy runs models of at most so many parameters: with them it is as fast as torch, and starts sooner."""


def _runs(checkpoint: Checkpoint) -> bool:
    if (
        checkpoint.uses_chat_template
        or not is_llama(checkpoint.config)
        or not (checkpoint.path / "tokenizer.json").is_file()
    ):
        return False
    parameters = checkpoint.parameters()
    return parameters is not None and parameters <= MAX_PARAMETERS_IN_NUMPY


def _open(checkpoint: Checkpoint) -> InferenceEngine:
    from podium_lab.engine.numpy_engine import NumpyEngine  # noqa: PLC0415 - loads NumPy

    return NumpyEngine(checkpoint)


KIND = InferenceEngineKind(_runs, _open)
