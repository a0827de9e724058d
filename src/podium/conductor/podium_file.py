"""Finds the podium.json of a policy that another machine serves: a folder, the file itself, or a model on the hub.

A served model does not say how it was trained to be asked. Its podium.json does, and its weights are not needed here.
"""

from __future__ import annotations

from pathlib import Path

from podium.conductor.checkpoint import SHIPPED, PodiumFile, read_podium_json, shipped
from podium.errors import CheckpointError

NAME = "podium.json"


def read_podium_file(source: str) -> PodiumFile:
    """What a policy says of itself.

    Args:
        source: the checkpoint's folder, its podium.json, a shipped checkpoint's name, or OWNER/NAME on the Hugging Face
            hub.

    Raises:
        CheckpointError: there is no such file, or the hub does not give it.
        ConfigError: it has a key or a value that is not known.
    """
    path = shipped(source) if source in SHIPPED else Path(source)
    if path.is_dir():
        path = path / NAME
        if not path.is_file():
            raise CheckpointError(
                f"{source} has no {NAME}; give the folder that training left, or leave it out."
            )
    elif not path.is_file():
        if source.count("/") != 1 or source.startswith((".", "/", "~")) or source.endswith(".json"):
            raise CheckpointError(
                f"{source} is not there; give a checkpoint's folder, its {NAME}, or OWNER/NAME on the hub."
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
            f"{name} is no folder here, and the hub does not give its {NAME}: {reason} Fetch it where the hub is "
            f"reached, with: hf download {name} {NAME}"
        ) from None
