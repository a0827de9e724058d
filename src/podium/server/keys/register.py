"""Keys as they are stored: the secret, what is kept of it, and the interface of the two registers (SQLite, PostgreSQL).

A key is 256 random bits behind a public beginning by which it is found. Only its SHA-256 is kept: a slow hash protects
secrets that people make up, and would delay every request. Each operation of a register is atomic across processes;
rate limits and budgets over several replicas depend on that. `keys` and `key_budget` make the decisions.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from podium.server.keys.caller import Caller

WINDOW_S = 60.0
"""Seconds of the sliding window in which requests a minute are counted."""
_FORM = re.compile(r"(pk-[0-9a-f]{8})-[A-Za-z0-9_-]{43}")
NO_DIGEST = bytes(32)
"""The digest that an unknown key is compared with. No known text has this SHA-256."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is stored."""

    caller: Caller
    """The caller that uses it; name and id are set."""
    digest: bytes = field(repr=False)
    """The key's SHA-256."""
    added: datetime
    """UTC."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The state of a key's budget in one period over all replicas, in billionths of a dollar."""

    spent: int = 0
    reserved: int = 0
    """Reserved by replicas for calls in flight. What a killed replica had reserved stays so: its providers may bill
    it."""


class Register(Protocol):
    """Stores keys. `key` is a key's id, `period` a name from `KeyAllowance.period`.

    Raises:
        StoreError: the register cannot be read or written.
    """

    async def add(self, key: StoredKey) -> bool:
        """Store a key. False: its name or id exists already, and nothing changed."""
        ...

    async def remove(self, name: str) -> bool:
        """Remove a key and what it spent. False: there is no key of this name."""
        ...

    async def keys(self) -> tuple[StoredKey, ...]:
        """All keys, the oldest first."""
        ...

    async def count_request(self, key: str) -> float | None:
        """Count one request now, or return the seconds until the rate limit allows one."""
        ...

    async def reserve(self, key: str, period: str, limit: int, amount: int) -> Spending | None:
        """Reserve `amount`. None: that would pass `limit`, or the key was removed."""
        ...

    async def settle(self, key: str, period: str, paid: int, back: int) -> Spending:
        """Add `paid` to what was spent, and give back `back` of what was reserved."""
        ...

    async def spending(self, key: str, period: str) -> Spending:
        """What was spent and is reserved."""
        ...

    async def close(self) -> None:
        """Close the file or the connections. Calling twice is fine."""
        ...


@dataclass(frozen=True, slots=True)
class Secret:
    """A new key. It cannot be read again later."""

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
        """The SHA-256 that is stored."""
        return _digest(self.text)


def public_part(text: str) -> str:
    """The public beginning of a key; "" if the text does not have the form of a key."""
    found = _FORM.fullmatch(text)
    return found[1] if found else ""


def matches_digest(text: str, digest: bytes) -> bool:
    """Whether `text` is the key with this digest, compared in constant time."""
    return hmac.compare_digest(_digest(text), digest)


def bearer_token(authorization: str | None) -> str:
    """The key in an Authorization header; "" if there is none."""
    scheme, _, text = (authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
