"""Reading a safetensors file into float32 arrays, bfloat16 included, without torch.

NumPy has no bfloat16: its 16 bits are the upper half of a float32, so they are shifted into place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from podium.errors import CheckpointError


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """All tensors of the file by name, as float32.

    Raises:
        CheckpointError: the file is not safetensors, or holds a type other than F32, F16 or BF16.
    """
    try:
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} is not a whole safetensors file; copy or save the checkpoint again."
        ) from error
    return {name: _array(name, entry, path) for name, entry in entries}


def _array(name: str, entry: dict[str, Any], path: Path) -> NDArray[np.float32]:
    match entry["dtype"]:
        case "BF16":
            halves = np.frombuffer(entry["data"], dtype="<u2")
            flat = (halves.astype(np.uint32) << 16).view(np.float32)
        case "F16":
            flat = np.frombuffer(entry["data"], dtype="<f2").astype(np.float32)
        case "F32":
            flat = np.frombuffer(entry["data"], dtype="<f4").astype(np.float32)
        case other:
            raise CheckpointError(
                f"{path} holds {name} as {other}; save the checkpoint as float32, float16 or bfloat16."
            )
    return flat.reshape(entry["shape"])
