"""The keys themselves: made, taken apart, and told from others.

A key is 256 random bits behind a public beginning, by which it is looked up. Only its SHA-256 is kept. Slow hashes
are for what people make up and others can guess; 256 random bits cannot be, and every request would wait for it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

_FORM = re.compile(r"(pk-[0-9a-f]{8})-[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Secret:
    """A new key. It is not to be had again."""

    id: str
    """Its public beginning, as "pk-3f9a1c2e"."""
    text: str = field(repr=False)
    """The whole key."""

    @classmethod
    def new(cls) -> Secret:
        """256 bits of the system's randomness."""
        public = f"pk-{secrets.token_hex(4)}"
        return cls(public, f"{public}-{secrets.token_urlsafe(32)}")

    @property
    def digest(self) -> bytes:
        """What is kept of it."""
        return _digest(self.text)


NO_DIGEST = bytes(32)
"""What an unknown key is compared with. Nobody knows a text that has this SHA-256."""


def public_part(text: str) -> str:
    """The public beginning of a key; "" of what has not the form of one."""
    found = _FORM.fullmatch(text)
    return found[1] if found else ""


def same(text: str, digest: bytes) -> bool:
    """Whether `text` is the key of this digest; it takes as long whatever they are."""
    return hmac.compare_digest(_digest(text), digest)


def bearer(authorization: str | None) -> str:
    """The key in an Authorization header; "": there is none."""
    scheme, _, text = (authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
