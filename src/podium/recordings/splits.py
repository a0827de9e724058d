"""The splits of a recording: what they are called, and which a question is of whose source has none."""

from __future__ import annotations

import hashlib

SPLITS = ("train", "validation", "test")
SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
"""What sources call the splits, in lower case."""


def split_by_hash(question_id: str) -> str:
    """The split of a question whose source has none: 70, 15 and 15 % by a hash of its id."""
    place = int.from_bytes(hashlib.sha256(f"split/{question_id}".encode()).digest()[:4], "big") / 2**32
    return SPLITS[0] if place < 0.7 else SPLITS[1] if place < 0.85 else SPLITS[2]
