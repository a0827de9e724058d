"""A call's randomness as endpoints take it."""

from __future__ import annotations

from hashlib import sha256


def seed_number(seed: str) -> int:
    """The number of a named seed: 31 bits, the same on every machine."""
    return int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest()[:4]) >> 1
