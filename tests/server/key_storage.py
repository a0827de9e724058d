"""A storage of keys, for tests that open it more than once, as replicas do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from podium.server.keys import Caller, Keys, open_register
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.register import KeyRegister, Secret, StoredKey


@dataclass(frozen=True)
class KeyStorage:
    """Where keys are kept."""

    store: str
    """As --store names it."""

    def open(self, **options: Any) -> KeyRegister:
        """As one more replica."""
        return open_register(self.store, **options)

    def keys(self) -> Keys:
        """The keys of one more server."""
        return Keys(self.open())

    def add(self, name: str = "web", *, budget: str | None = None, **may: Any) -> str:
        """Make a key; its text. Not for tests that are coroutines."""
        return asyncio.run(self.added(name, budget=budget, **may))[0]

    async def added(self, name: str = "web", *, budget: str | None = None, **may: Any) -> tuple[str, Caller]:
        """Make a key; its text, and who asks with it."""
        secret = Secret.new()
        allowance = None if budget is None else KeyAllowance.read(budget)
        caller = Caller(name=name, id=secret.id, allowance=allowance, **may)
        register = self.open()
        try:
            assert await register.add(StoredKey(caller, secret.digest, datetime.now(UTC)))
        finally:
            await register.close()
        return secret.text, caller

    def remove(self, name: str = "web") -> None:
        """Remove a key. Not for tests that are coroutines."""

        async def removed() -> bool:
            register = self.open()
            try:
                return await register.remove(name)
            finally:
                await register.close()

        assert asyncio.run(removed())
