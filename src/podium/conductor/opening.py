"""Opens the policy of a checkpoint with the lightest engine that can run it.

The one place that chooses, and that imports NumPy or torch.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.policy import Policy
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.conductor.local_policy import Engine

SMALL = 50_000_000
"""Parameters up to which NumPy is used: there it is as fast as torch, and starts without its import."""


def open_policy(source: str | Path | Checkpoint) -> Policy:
    """Load the policy of a checkpoint folder, or of the shipped checkpoint of that name.

    A Llama- or Qwen2-shaped one of at most 50 M parameters that reads plain text runs in NumPy; any other
    through transformers.

    Raises:
        CheckpointError: the folder is not a checkpoint, or its files do not belong together.
        UsageError: it needs torch, which is not installed.
    """
    # OpenBLAS reads this when NumPy is first imported. Its threads spin while they wait: beside another busy
    # process on two cores, 200 tokens read and 60 written took 1.6 s, and take 0.12 s on one thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from podium.conductor.local_policy import LocalPolicy  # noqa: PLC0415

    checkpoint = source if isinstance(source, Checkpoint) else Checkpoint.read(source)
    return LocalPolicy(checkpoint.name, _engine(checkpoint))


def _engine(checkpoint: Checkpoint) -> Engine:
    if _is_small(checkpoint):
        from podium.conductor.numpy_engine import NumpyEngine  # noqa: PLC0415

        return NumpyEngine(checkpoint)
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise UsageError(
            f"{checkpoint.path} is a {checkpoint.config['model_type']} checkpoint that needs torch and "
            "transformers; install them with: pip install 'podium-conductor[train]'."
        )
    from podium.conductor.torch_engine import TorchEngine  # noqa: PLC0415

    return TorchEngine(checkpoint)


def _is_small(checkpoint: Checkpoint) -> bool:
    """Whether the NumPy engine computes exactly this model, and fast."""
    from podium.conductor.llama import is_llama  # noqa: PLC0415

    if (
        checkpoint.chats
        or not is_llama(checkpoint.config)
        or not (checkpoint.path / "tokenizer.json").is_file()
    ):
        return False
    parameters = checkpoint.parameters()
    return parameters is not None and parameters <= SMALL
