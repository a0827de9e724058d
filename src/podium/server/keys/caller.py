"""Who asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.server.keys.allowance import Allowance


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may."""

    name: str | None = None
    """Of the key; None: nobody needs one here."""
    admin: bool = False
    """Sees the traces of all."""
    allow: tuple[str, ...] | None = None
    """Workers that the key may use; None: all."""
    deny: tuple[str, ...] = ()
    """Workers that it may not use."""
    id: str | None = None
    """The key's public beginning, new for every key."""
    rpm: int | None = None
    """Requests that it may make in any 60 seconds; None: any number."""
    allowance: Allowance | None = None
    """Dollars that it may spend; None: any number."""

    def allowed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of `names` that this key may use, in order."""
        return tuple(
            name for name in names if name not in self.deny and (self.allow is None or name in self.allow)
        )


NOBODY = Caller(admin=True)
"""Whoever asks where no key is needed."""
