"""What is kept of keys, and what every form of keeping it can do: in a file of SQLite, or in PostgreSQL.

Each operation is one step that no other comes between, in this process or another. That is what rates and budgets
over several replicas stand on. It decides nothing else; see `keys` and `key_budget`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from podium.server.keys.caller import Caller

WINDOW_S = 60.0
"""Requests a minute are those of any 60 seconds."""


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A key, as it is kept."""

    caller: Caller
    """Who asks with it: name and id are given."""
    digest: bytes = field(repr=False)
    """The key's SHA-256."""
    added: datetime
    """UTC."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a budget in one period, in billionths of a dollar, over all replicas."""

    spent: int = 0
    held: int = 0
    """Kept aside by replicas for calls in flight. What a replica that was killed held stays so: its providers may
    bill it."""


class Register(Protocol):
    """Where keys are kept. `key` is a key's id, `period` as `Allowance.period` names it.

    Raises:
        StoreError: it cannot be read or written.
    """

    async def add(self, key: KeptKey) -> bool:
        """Keep a key; False: there is one of this name or id, and nothing was done."""
        ...

    async def remove(self, name: str) -> bool:
        """Forget a key and what it spent; False: there is none of this name."""
        ...

    async def keys(self) -> tuple[KeptKey, ...]:
        """All, the oldest first."""
        ...

    async def request(self, key: str) -> float | None:
        """Book one request now; or the seconds until another may be made, and none is booked."""
        ...

    async def take(self, key: str, period: str, limit: int, amount: int) -> Standing | None:
        """Keep `amount` aside; None: then more than `limit` would be spent or held, or the key was removed."""
        ...

    async def book(self, key: str, period: str, paid: int, back: int) -> Standing:
        """Book what was paid, and give back what was kept aside."""
        ...

    async def standing(self, key: str, period: str) -> Standing:
        """What was spent and is held."""
        ...

    async def close(self) -> None:
        """Let go of the file or the connections. Calling twice is fine."""
        ...
