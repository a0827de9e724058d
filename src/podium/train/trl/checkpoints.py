"""Finds the checkpoint of TRL's trainer from which a run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import is_zipfile

from safetensors import SafetensorError, safe_open

from podium.errors import CheckpointError

_STATE, _RANDOMNESS = "trainer_state.json", "rng_state*.pth"
"""The files that the trainer's ranks write last."""


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint. A killed process may leave a checkpoint whose last files are missing or cut.
    None if there is none.

    Raises:
        CheckpointError: another file of the checkpoint is cut or damaged.
    """
    newest = max(filter(_is_complete, folder.glob("checkpoint-*")), key=step_of, default=None)
    damaged = None if newest is None else next((path for path in newest.iterdir() if _is_damaged(path)), None)
    if damaged is not None:
        raise CheckpointError(
            f"{damaged} is cut or damaged; restore it, or remove its folder to go on from the checkpoint before."
        )
    return newest


def step_of(checkpoint: Path) -> int:
    """The number of steps of the optimiser before the checkpoint."""
    return int(checkpoint.name.rpartition("-")[2])


def _is_complete(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / _STATE).read_bytes())
    except (OSError, ValueError):
        return False
    return all(map(is_zipfile, checkpoint.glob(_RANDOMNESS)))


def _is_damaged(path: Path) -> bool:
    """Whether a file of weights or states is cut. Files of other kinds are not looked at."""
    if path.suffix == ".pt":
        return not is_zipfile(path)  # torch's files are archives.
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, framework="pt"):
                pass
        except SafetensorError:
            return True
    return False
