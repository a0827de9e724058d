"""Reads the podium.json of a policy that a server runs: from a folder, from the file itself, or from the hub.

A server does not say how its model was prompted in training; podium.json does. The weights are not needed here.
"""

from __future__ import annotations

from pathlib import Path

from podium.conductor.checkpoint import PodiumFile, checkpoint_folder, read_podium_json
from podium.errors import CheckpointError

NAME = "podium.json"


def read_podium_file(source: str) -> PodiumFile:
    """Read the podium.json of a policy.

    Args:
        source: the checkpoint's folder, its podium.json, a shipped checkpoint's name, or OWNER/NAME on the Hugging Face
            hub.

    Raises:
        CheckpointError: there is no such file, or it cannot be fetched from the hub.
        ConfigError: it has a key or a value that is not known.
    """
    path = checkpoint_folder(source)
    if path.is_dir():
        path = path / NAME
        if not path.is_file():
            raise CheckpointError(
                f"{source} has no {NAME}; give the folder that training wrote, or leave it out."
            )
    elif not path.is_file():
        if source.count("/") != 1 or source.startswith((".", "/", "~")) or source.endswith(".json"):
            raise CheckpointError(
                f"{source} does not exist; give a checkpoint's folder, its {NAME}, or OWNER/NAME on the hub."
            )
        path = _fetch(source)
    return read_podium_json(path)


def _fetch(name: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - takes a while to load
        from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415
    except ImportError:
        raise CheckpointError(
            f"{name} is no folder here, and huggingface_hub is not installed: pip install huggingface_hub."
        ) from None
    try:
        return Path(hf_hub_download(name, NAME))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(
            f"{name} is no folder here, and its {NAME} cannot be fetched from the hub: {reason} Fetch it on a machine "
            f"that reaches the hub, with: hf download {name} {NAME}"
        ) from None
