"""What is kept of keys, and what every form of keeping it can do: in a file of SQLite, or in PostgreSQL.

Each operation is one step that no other comes between, in this process or another. That is what rates and budgets
over several replicas stand on. It decides nothing else; see `keys` and `key_budget`.


@@The keys themselves: made, taken apart, and told from others.

A key is 256 random bits behind a public beginning, by which it is looked up. Only its SHA-256 is kept. Slow hashes
are for what people make up and others can guess; 256 random bits cannot be, and every request would wait for it.
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
"""Requests a minute are those of any 60 seconds."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key, as it is kept."""

    caller: Caller
    """Who asks with it: name and id are given."""
    digest: bytes = field(repr=False)
    """The key's SHA-256."""
    added: datetime
    """UTC."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What became of a budget in one period, in billionths of a dollar, over all replicas."""

    spent: int = 0
    held: int = 0
    """Kept aside by replicas for calls in flight. What a replica that was killed held stays so: its providers may
    bill it."""


class Register(Protocol):
    """Where keys are kept. `key` is a key's id, `period` as `KeyAllowance.period` names it.

    Raises:
        StoreError: it cannot be read or written.
    """

    async def add(self, key: StoredKey) -> bool:
        """Keep a key; False: there is one of this name or id, and nothing was done."""
        ...

    async def remove(self, name: str) -> bool:
        """Forget a key and what it spent; False: there is none of this name."""
        ...

    async def keys(self) -> tuple[StoredKey, ...]:
        """All, the oldest first."""
        ...

    async def request(self, key: str) -> float | None:
        """Book one request now; or the seconds until another may be made, and none is booked."""
        ...

    async def take(self, key: str, period: str, limit: int, amount: int) -> Spending | None:
        """Keep `amount` aside; None: then more than `limit` would be spent or held, or the key was removed."""
        ...

    async def book(self, key: str, period: str, paid: int, back: int) -> Spending:
        """Book what was paid, and give back what was kept aside."""
        ...

    async def spending(self, key: str, period: str) -> Spending:
        """What was spent and is held."""
        ...

    async def close(self) -> None:
        """Let go of the file or the connections. Calling twice is fine."""
        ...


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


def matches_digest(text: str, digest: bytes) -> bool:
    """Whether `text` is the key of this digest; it takes as long whatever they are."""
    return hmac.compare_digest(_digest(text), digest)


def bearer_token(authorization: str | None) -> str:
    """The key in an Authorization header; "": there is none."""
    scheme, _, text = (authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
