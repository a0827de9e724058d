"""A storage of keys, for tests that open it more than once, as replicas do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from podium.server.keys import Caller, Keys, open_key_store
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.key_store import KeyStore, NewKey, StoredKey


@dataclass(frozen=True)
class KeyStorage:
    """Where keys are kept."""

    store: str
    """As --store names it."""

    def open(self, **options: Any) -> KeyStore:
        """As one more replica."""
        return open_key_store(self.store, **options)

    def keys(self) -> Keys:
        """The keys of one more server."""
        return Keys(self.open())

    def add(self, name: str = "web", *, budget: str | None = None, **may: Any) -> str:
        """Make a key; its text. Not for tests that are coroutines."""
        return asyncio.run(self.added(name, budget=budget, **may))[0]

    async def added(self, name: str = "web", *, budget: str | None = None, **may: Any) -> tuple[str, Caller]:
        """Make a key; its text, and who asks with it."""
        secret = NewKey.generate()
        allowance = None if budget is None else KeyAllowance.read(budget)
        caller = Caller(name=name, id=secret.id, allowance=allowance, **may)
        key_store = self.open()
        try:
            assert await key_store.add(StoredKey(caller, secret.digest, datetime.now(UTC)))
        finally:
            await key_store.close()
        return secret.text, caller

    def remove(self, name: str = "web") -> None:
        """Remove a key. Not for tests that are coroutines."""

        async def removed() -> bool:
            key_store = self.open()
            try:
                return await key_store.remove(name)
            finally:
                await key_store.close()

        assert asyncio.run(removed())
