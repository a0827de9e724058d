"""Named randomness for torch: one name, one stream, for ever."""

from __future__ import annotations

import hashlib

import torch


def generator(name: str) -> torch.Generator:
    """A CPU generator whose stream depends on `name` alone."""
    digest = hashlib.sha256(name.encode()).digest()
    # torch takes 64-bit seeds; the top bit is left out because it would be read as a sign.
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
