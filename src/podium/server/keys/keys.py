"""The keys of a server: authentication, rate limits, and each key's budget. Routes use it, and it uses the `key_store`.

On any interface except loopback, a key is always required. Only the public beginning of a key leaves this folder.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import APIError, UsageError
from podium.files.locations import default_store, refuse_malformed_address
from podium.server.keys.caller import ANONYMOUS, Caller
from podium.server.keys.key_budget import KeyBudget
from podium.server.keys.key_store import (
    NO_DIGEST,
    KeyStore,
    StoredKey,
    bearer_token,
    matches_digest,
    public_part,
)
from podium.workers.chat.endpoint import is_loopback

_FRESH_S = 1.0
"""Seconds for which keys that were read are used again. A removed key is refused after this time at the latest."""
_UNKNOWN = (
    "This server does not know your key; send one as 'Authorization: Bearer pk-...'. "
    "The operator of the server makes them with `podium keys add`."
)
FILE = "keys.sqlite"
"""Name of the file of keys, in the folder of the file of traces."""


def _utc() -> datetime:
    return datetime.now(UTC)


class Keys:
    """Checks keys, rate limits and budgets. It belongs to one event loop, and closes the key store.

    All methods raise a `StoreError` if the key store cannot be read or written.
    """

    def __init__(self, key_store: KeyStore, *, now: Callable[[], datetime] = _utc) -> None:
        self.key_store = key_store
        self._needed = False
        self._now = now
        self._known: dict[str, StoredKey] = {}
        self._read_s = -math.inf
        self._reading = asyncio.Lock()
        self._budgets: dict[tuple[str, str], KeyBudget] = {}

    async def authenticate(self, authorization: str | None) -> Caller:
        """The caller of a request, by its Authorization header. The request counts against the key's rate limit."""
        caller = await self.caller(authorization)
        await self.admit(caller)
        return caller

    async def caller(self, authorization: str | None) -> Caller:
        """The caller of a request, by its Authorization header.

        Once a server has seen a key it always requires one, even after the last is removed.

        Raises:
            APIError: 401, with the same message whatever is wrong with the key.
            StoreError: the keys cannot be read.
        """
        await self._read()
        if not self._needed:
            return ANONYMOUS
        text = bearer_token(authorization)
        stored = self._known.get(public_part(text))
        # Compare even if the key is unknown, so that both cases take equally long.
        right = matches_digest(text, NO_DIGEST if stored is None else stored.digest)
        if stored is None or not right:
            raise APIError(
                401,
                "authentication_error",
                _UNKNOWN,
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return stored.caller

    async def admit(self, caller: Caller) -> None:
        """Count one request of the caller against its rate limit.

        Raises:
            APIError: 429, with the seconds to wait in Retry-After.
            StoreError: the request cannot be counted.
        """
        if caller.id is None:
            return
        if caller.rpm is not None:
            wait_s = await self.key_store.count_request(caller.id)
            if wait_s is not None:
                seconds = max(1, math.ceil(wait_s))
                raise APIError(
                    429,
                    "rate_limit_error",
                    f"The key {caller.name!r} may make {caller.rpm} requests a minute: try again in {seconds} s.",
                    code="rate_limit_exceeded",
                    headers={"Retry-After": str(seconds)},
                )
        key_budget = self._key_budget(caller)
        if key_budget is not None:
            refreshed_s = key_budget.refreshed_s
            if refreshed_s is None or asyncio.get_running_loop().time() - refreshed_s > _FRESH_S:
                await key_budget.refresh()

    def spend_limit(self, caller: Caller) -> KeyBudget | None:
        """The budget that a question of this caller is charged to. None if the caller has no limit.

        A question is charged to the day or month in which it begins.

        Raises:
            APIError: 402, nothing is left. OpenAI's clients do not retry on its code.
        """
        key_budget = self._key_budget(caller)
        if key_budget is not None and key_budget.spent_message is not None:
            raise APIError(402, "budget_exceeded", key_budget.spent_message, code="insufficient_quota")
        return key_budget

    @property
    def are_needed(self) -> bool:
        """Whether a key is needed, by the keys that were last read."""
        return self._needed

    async def open(self, host: str) -> None:
        """Read the keys, before the server listens on `host`. On any host except loopback, a key is needed from now on.

        Raises:
            UsageError: a key is needed and none exists.
        """
        self._needed = not is_loopback(host)
        await self._read()
        if self._needed and not self._known:
            raise UsageError(
                f"--host {host} can be reached by others, and there is no key yet: make one with `podium keys add "
                "NAME`, with the same --store, or listen on 127.0.0.1."
            )

    async def close(self) -> None:
        """Settle what was spent, and close the key store. Calling twice is fine."""
        for key_budget in self._budgets.values():
            await key_budget.close()
        self._budgets.clear()
        await self.key_store.close()

    async def _read(self) -> None:
        clock = asyncio.get_running_loop().time
        if clock() - self._read_s <= _FRESH_S:
            return
        async with self._reading:
            began = clock()
            if began - self._read_s > _FRESH_S:
                self._known = {stored.caller.id or "": stored for stored in await self.key_store.keys()}
                self._needed = self._needed or bool(self._known)
                self._read_s = began

    def _key_budget(self, caller: Caller) -> KeyBudget | None:
        if caller.id is None or caller.allowance is None:
            return None
        period_key = (caller.id, caller.allowance.period(self._now()))
        if period_key not in self._budgets:
            # Budgets of past periods are idle once all that they reserved is settled.
            over = [
                old for old, key_budget in self._budgets.items() if old[0] == caller.id and key_budget.idle
            ]
            for old in over:
                del self._budgets[old]
            self._budgets[period_key] = KeyBudget(self.key_store, caller, period_key[1])
        return self._budgets[period_key]


def open_key_store(
    store: str | Path | None = None, *, create: bool = True, environ: Mapping[str, str] = os.environ
) -> KeyStore:
    """Open the keys that belong to a store of traces: in the same database, or in a file in the same folder.

    Args:
        store: the store of traces: an SQLite file, or an address like "postgresql://user@host/database". Default:
            `default_store`.
        create: whether a missing file of keys is created.

    Raises:
        UsageError: the keys cannot be opened, or a package is missing.
    """
    location = str(store or default_store(environ))
    refuse_malformed_address(location)
    if "://" in location:
        return KeyStore(location)
    return KeyStore(Path(location).expanduser().with_name(FILE), create=create)
